// SPDX-License-Identifier: MIT OR Apache-2.0
//! The type of a table's rows, from which the keys of `--json` and their reference follow.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::cell::Unit;

/// One column: its key in JSON, its header for people.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Spelled out, units last: `ops_per_second`.
    pub key: &'static str,
    /// Short, for people.
    pub header: &'static str,
    /// What its numbers count.
    pub unit: Unit,
}

impl Column {
    /// A column; see the fields.
    pub const fn new(key: &'static str, header: &'static str, unit: Unit) -> Column {
        Column { key, header, unit }
    }
}

/// One row of a table: a struct whose fields are the keys of `--json`, in order, each with a line that says what it is, with
/// its unit. [`row!`](crate::row) says the rest.
pub trait Row: Serialize + JsonSchema {
    /// What the JSON calls the table: `"table": "vcpu"`.
    const TABLE: &'static str;
    /// The commands that print such a table, as in `vm run`.
    const COMMANDS: &'static [&'static str];
    /// What people see of it: keys of this row, with headers and units.
    const COLUMNS: &'static [Column];
}

/// A type of rows that is in the reference.
pub struct RegisteredRow {
    /// [`Row::TABLE`].
    pub table: &'static str,
    /// [`Row::COMMANDS`].
    pub commands: &'static [&'static str],
    /// [`Row::COLUMNS`].
    pub columns: &'static [Column],
    /// JSON Schema of a row (draft 2020-12), without references.
    pub schema: fn() -> Value,
}

inventory::collect!(RegisteredRow);

/// Declares the rows of a table: `"TABLE", [COMMANDS];` and a struct whose fields are the keys of `--json`, each with its type,
/// and, where people see the column, its header and its [`Unit`] (a variant's name): `longest_ns: u64 = ("longest", Nanoseconds)`.
/// The struct gets `Serialize` and `JsonSchema` (its crate depends on serde and schemars) and is put into the reference. For a
/// struct that is there already: `row!(VcpuRow, "vcpu", &["vm run"], COLUMNS)`.
///
/// Keys that several rows share are a struct below `keys;`, declared the same way. A row has it as a field,
/// `#[serde(flatten)] scheduling: SchedulingKeys = (of SchedulingKeys)`: its columns stand where the field stands.
#[macro_export]
macro_rules! row {
    (
        keys;
        $(#[$attribute:meta])*
        $visibility:vis struct $keys:ident {
            $(
                $(#[$field_attribute:meta])*
                $field_visibility:vis $field:ident: $type:ty $(= ($header:literal, $unit:ident))?
            ),* $(,)?
        }
    ) => {
        #[derive(::serde::Serialize, ::schemars::JsonSchema)]
        $(#[$attribute])*
        $visibility struct $keys {
            $($(#[$field_attribute])* $field_visibility $field: $type,)*
        }

        impl $keys {
            /// What people see of them.
            $visibility const COLUMNS: &'static [$crate::Column] = &[
                $($($crate::Column::new(stringify!($field), $header, $crate::Unit::$unit),)?)*
            ];
        }
    };
    (
        $table:literal, $commands:expr;
        $(#[$attribute:meta])*
        $visibility:vis struct $row:ident {
            $(
                $(#[$field_attribute:meta])*
                $field_visibility:vis $field:ident: $type:ty $(= ($($column:tt)+))?
            ),* $(,)?
        }
    ) => {
        #[derive(::serde::Serialize, ::schemars::JsonSchema)]
        $(#[$attribute])*
        $visibility struct $row {
            $($(#[$field_attribute])* $field_visibility $field: $type,)*
        }

        $crate::row!($row, $table, &$commands, {
            const PARTS: &[&[$crate::Column]] = &[$($($crate::row!(@column $field $($column)+),)?)*];
            &$crate::joined::<{ $crate::joined_len(PARTS) }>(PARTS)
        });
    };
    (@column $field:ident of $keys:ty) => {
        <$keys>::COLUMNS
    };
    (@column $field:ident $header:literal, $unit:ident) => {
        &[$crate::Column::new(stringify!($field), $header, $crate::Unit::$unit)]
    };
    ($row:ty, $table:expr, $commands:expr, $columns:expr $(,)?) => {
        impl $crate::Row for $row {
            const TABLE: &'static str = $table;
            const COMMANDS: &'static [&'static str] = $commands;
            const COLUMNS: &'static [$crate::Column] = $columns;
        }

        $crate::inventory::submit! {
            $crate::RegisteredRow {
                table: <$row as $crate::Row>::TABLE,
                commands: <$row as $crate::Row>::COMMANDS,
                columns: <$row as $crate::Row>::COLUMNS,
                schema: $crate::schema::<$row>,
            }
        }
    };
}

/// How many columns there are in all parts.
pub const fn joined_len(parts: &[&[Column]]) -> usize {
    let (mut part, mut length) = (0, 0);
    while part < parts.len() {
        length += parts[part].len();
        part += 1;
    }
    length
}

/// The columns of all parts, in order; `LENGTH` is [`joined_len`] of them.
pub const fn joined<const LENGTH: usize>(parts: &[&[Column]]) -> [Column; LENGTH] {
    let mut columns = [Column::new("", "", Unit::Text); LENGTH];
    let (mut part, mut place) = (0, 0);
    while part < parts.len() {
        let mut column = 0;
        while column < parts[part].len() {
            columns[place] = parts[part][column];
            place += 1;
            column += 1;
        }
        part += 1;
    }
    columns
}

/// Every type of rows, by command and table.
pub fn registered_rows() -> Vec<&'static RegisteredRow> {
    let mut rows: Vec<_> = inventory::iter::<RegisteredRow>.into_iter().collect();
    rows.sort_by_key(|row| (row.commands, row.table));
    rows
}

/// The JSON Schema of a row.
pub fn schema<R: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    settings
        .into_generator()
        .into_root_schema_for::<R>()
        .to_value()
}

/// The row as a JSON object. A number that is not finite is null.
///
/// # Panics
/// When it is no struct of plain values, and in a debug build when its keys are not those of its schema.
pub(crate) fn object<R: Row>(row: &R) -> Map<String, Value> {
    let value = serde_json::to_value(row).expect("a struct of plain values");
    let Value::Object(object) = value else {
        panic!("a row of {} is no struct", R::TABLE);
    };
    debug_assert!(
        schema::<R>()["properties"]
            .as_object()
            .is_some_and(|known| known.keys().eq(object.keys())),
        "the keys of {} are not those of its schema",
        R::TABLE
    );
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, Table};

    row! {
        "vcpu", ["vm run"];
        /// What a vCPU did.
        struct VcpuRow {
            /// Its number.
            vcpu: u32,
            /// Share of its time; percent.
            share_percent: Option<f64> = ("%", Percent),
            #[serde(flatten)]
            waits: WaitKeys = (of WaitKeys),
        }
    }

    row! {
        keys;
        /// Its waits.
        struct WaitKeys {
            /// How many.
            waits: u64,
            /// Its longest wait.
            longest_ns: u64 = ("longest", Nanoseconds),
        }
    }

    fn table() -> Table {
        let row = |share_percent| VcpuRow {
            vcpu: 3,
            share_percent,
            waits: WaitKeys {
                waits: 2,
                longest_ns: 5_600,
            },
        };
        Table::of("vCPUs", [row(Some(12.34)), row(Some(f64::NAN)), row(None)])
    }

    #[test]
    fn keys_follow_from_the_type() {
        let rows = table().json_rows();
        let keys: Vec<_> = rows[0].as_object().expect("an object").keys().collect();
        assert_eq!(
            keys,
            ["table", "vcpu", "share_percent", "waits", "longest_ns"]
        );
        assert_eq!(rows[0]["share_percent"], 12.34);
        assert_eq!(
            (&rows[1]["share_percent"], &rows[2]["share_percent"]),
            (&Value::Null, &Value::Null)
        );
    }

    #[test]
    fn people_see_the_columns() {
        let mut out = Vec::new();
        table()
            .without_columns(&["share_percent"])
            .write_text(&mut out)
            .expect("a Vec takes it");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(text.contains("vCPUs") && text.contains("5.6 us"), "{text}");
        assert!(!text.contains('%') && !text.contains("12.3"), "{text}");
    }

    #[test]
    fn the_reference_has_it() {
        let rows = registered_rows();
        let found: Vec<_> = rows.iter().filter(|row| row.table == "vcpu").collect();
        assert_eq!((found.len(), found[0].commands), (1, &["vm run"][..]));
        let shown: Vec<_> = found[0].columns.iter().map(|column| column.key).collect();
        assert_eq!(shown, ["share_percent", "longest_ns"]);
        let schema = (found[0].schema)();
        let property = &schema["properties"]["longest_ns"];
        assert_eq!(property["description"], "Its longest wait.");
        assert_eq!(property["type"], "integer");
    }

    #[test]
    #[should_panic(expected = "a table that is not in its reference")]
    fn another_command_may_not_print_it() {
        Document::new("explain", "here").table(table());
    }
}
