// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cycles between modules of a crate.
//!
//! A module and those below it are one concept, and may use each other as they like. Beside each other they are different
//! ones: of the modules that stand in one module, none may use another that uses it, whether themselves or by what stands
//! below them. Counted are paths: of `use`, in code and in macros. A name that a module only passes on (`pub use`) counts
//! as a use of where it stands. What is compiled for tests only does not count, nor do calls of methods, which name no path.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::Context;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::{
    Texts,
    graph::{self, Uses},
};

/// How often a name may be passed on before it is given up: names may be passed on in a circle.
const PASSED_ON: usize = 16;

fn within(parent: &[String]) -> String {
    if parent.is_empty() {
        return "crate".into();
    }
    parent.join("::")
}

/// Where a module stands: the names from the crate's root down.
type Place = Vec<String>;

/// The modules of a crate, of a library, a program or a file of tests.
pub struct Crate {
    root: PathBuf,
    modules: BTreeMap<Place, Module>,
}

#[derive(Default)]
struct Module {
    /// Names that `use` brings in, and their paths.
    names: BTreeMap<String, Vec<String>>,
    /// Paths that it names otherwise, or takes everything of.
    paths: BTreeSet<Vec<String>>,
}

/// Whether a crate begins with that file, as cargo finds them.
pub fn is_root(file: &Path) -> bool {
    let names: Vec<&str> = file.iter().filter_map(|name| name.to_str()).collect();
    match names[..] {
        ["crates", _, "src", "lib.rs" | "main.rs"] => true,
        ["crates", _, "tests", file] => file.ends_with(".rs"),
        ["crates", _, "tests", _, "main.rs"] => true,
        _ => false,
    }
}

impl Crate {
    /// Follows the `mod` of its files.
    ///
    /// # Errors
    /// When a file of it is no Rust.
    pub fn read(root: &Path, texts: &Texts) -> anyhow::Result<Self> {
        let mut modules = BTreeMap::new();
        let mut open = vec![(Place::new(), root.to_path_buf(), true)];
        while let Some((place, file, owns_folder)) = open.pop() {
            let parsed = syn::parse_file(&texts[&file])
                .with_context(|| format!("{} is no Rust", file.display()))?;
            let mut reader = Reader::new(place, &file, owns_folder, texts);
            reader.visit_file(&parsed);
            modules.append(&mut reader.modules);
            open.append(&mut reader.files);
        }
        let root = root.to_path_buf();
        Ok(Self { root, modules })
    }

    /// The cycles among the modules of each module, a paragraph each: who is in it, and which modules use which by which
    /// paths.
    pub fn cycles(&self) -> Vec<String> {
        let mut beside: BTreeMap<Place, Beside> = BTreeMap::new();
        for (user, module) in &self.modules {
            for path in module.paths.iter().chain(module.names.values()) {
                if let Some(used) = self.find(user, path, PASSED_ON) {
                    note(&mut beside, user, &used, path);
                }
            }
        }
        let mut lines = Vec::new();
        for (parent, beside) in beside {
            for cycle in graph::cycles(&beside.uses) {
                lines.push(self.describe(&parent, &cycle, &beside));
            }
        }
        lines
    }

    fn describe(&self, parent: &[String], cycle: &[String], beside: &Beside) -> String {
        let within = within(parent);
        let mut text = format!(
            "{}: in {within} these use each other in a circle: {}",
            self.root.display(),
            cycle.join(", ")
        );
        for ((user, used), why) in &beside.why {
            if cycle.contains(user) && cycle.contains(used) {
                let why: Vec<&str> = why.iter().map(String::as_str).collect();
                text += &format!("\n    {user} uses {used}: {}", why.join(", "));
            }
        }
        text
    }

    /// The module where a path leads to, seen from a module; `None` for what is not of this crate.
    fn find(&self, from: &[String], path: &[String], depth: usize) -> Option<Place> {
        let depth = depth.checked_sub(1)?;
        let (mut place, rest) = match path[0].as_str() {
            "crate" => (Place::new(), &path[1..]),
            "self" => (from.to_vec(), &path[1..]),
            "super" => (from[..from.len().checked_sub(1)?].to_vec(), &path[1..]),
            first => {
                let names = &self.modules[from].names;
                let known = self.modules.contains_key(&below(from, first));
                // `use name;` brings in a crate under its own name.
                let passed = names
                    .get(first)
                    .is_some_and(|target| target[..] != path[..]);
                if !known && !passed {
                    return None;
                }
                (from.to_vec(), path)
            }
        };
        for (index, name) in rest.iter().enumerate() {
            let next = below(&place, name);
            if name == "super" {
                place.pop()?;
            } else if self.modules.contains_key(&next) {
                place = next;
            } else if let Some(target) = self.modules[&place].names.get(name) {
                let onward: Vec<String> =
                    target.iter().chain(&rest[index + 1..]).cloned().collect();
                return self
                    .find(&place, &onward, depth)
                    .or(Some(place))
                    .filter(|place| place[..] != *from);
            } else {
                break;
            }
        }
        Some(place)
    }
}

/// Modules that stand beside each other, by name.
#[derive(Default)]
struct Beside {
    uses: Uses,
    why: BTreeMap<(String, String), BTreeSet<String>>,
}

/// Counts a use among the modules where the two ways from the root part.
fn note(beside: &mut BTreeMap<Place, Beside>, user: &[String], used: &[String], path: &[String]) {
    let common = user.iter().zip(used).take_while(|(a, b)| a == b).count();
    let (Some(of), Some(to)) = (user.get(common), used.get(common)) else {
        return;
    };
    let beside = beside.entry(user[..common].to_vec()).or_default();
    beside
        .uses
        .entry(of.clone())
        .or_default()
        .insert(to.clone());
    let why = format!("{} ({})", path.join("::"), user.join("::"));
    beside
        .why
        .entry((of.clone(), to.clone()))
        .or_default()
        .insert(why);
}

fn below(place: &[String], name: &str) -> Place {
    place
        .iter()
        .map(String::as_str)
        .chain([name])
        .map(String::from)
        .collect()
}

/// What one file has in it.
struct Reader<'a> {
    texts: &'a Texts,
    file: &'a Path,
    /// Where the files of modules that it names stand.
    folder: PathBuf,
    place: Place,
    modules: BTreeMap<Place, Module>,
    /// Modules in files of their own: place, file, whether modules below it stand in the same folder.
    files: Vec<(Place, PathBuf, bool)>,
}

impl<'a> Reader<'a> {
    fn new(place: Place, file: &'a Path, owns_folder: bool, texts: &'a Texts) -> Self {
        let mut folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
        if !owns_folder {
            folder.push(file.file_stem().unwrap_or_default());
        }
        let modules = BTreeMap::from([(place.clone(), Module::default())]);
        Self {
            texts,
            file,
            folder,
            place,
            modules,
            files: Vec::new(),
        }
    }

    fn module(&mut self) -> &mut Module {
        self.modules.entry(self.place.clone()).or_default()
    }

    fn path(&mut self, names: Vec<String>) {
        if names.len() > 1 {
            self.module().paths.insert(names);
        }
    }

    fn module_in_file(&mut self, item: &syn::ItemMod, name: &str) {
        let beside = self.file.parent().unwrap_or(Path::new(""));
        let candidates = match path_attribute(&item.attrs) {
            Some(path) => vec![(beside.join(path), true)],
            None => vec![
                (self.folder.join(format!("{name}.rs")), false),
                (self.folder.join(name).join("mod.rs"), true),
            ],
        };
        let found = candidates
            .into_iter()
            .map(|(file, owns_folder)| (normal(&file), owns_folder))
            .find(|(file, _)| self.texts.contains_key(file));
        // A file that the build makes is none of the tree.
        if let Some((file, owns_folder)) = found {
            self.files
                .push((below(&self.place, name), file, owns_folder));
        }
    }

    fn tree(&mut self, tree: &syn::UseTree, before: &[String]) {
        match tree {
            syn::UseTree::Path(path) => {
                self.tree(&path.tree, &below(before, &path.ident.to_string()))
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.tree(tree, before))
            }
            syn::UseTree::Glob(_) => self.path(before.to_vec()),
            syn::UseTree::Name(name) => self.name(before, &name.ident, &name.ident),
            syn::UseTree::Rename(rename) => self.name(before, &rename.ident, &rename.rename),
        }
    }

    fn name(&mut self, before: &[String], ident: &syn::Ident, called: &syn::Ident) {
        let path = if ident == "self" {
            before.to_vec()
        } else {
            below(before, &ident.to_string())
        };
        let called = if called == "self" {
            path[path.len() - 1].clone()
        } else {
            called.to_string()
        };
        self.module().names.insert(called, path);
    }

    /// Paths in what a macro is called with.
    fn tokens(&mut self, tokens: &TokenStream) {
        let mut names: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens.clone() {
            match &token {
                TokenTree::Punct(punct) if punct.as_char() == ':' && !names.is_empty() => {
                    colons += 1
                }
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.path(std::mem::take(&mut names));
                    }
                    names.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Group(group) => {
                    self.path(std::mem::take(&mut names));
                    colons = 0;
                    self.tokens(&group.stream());
                }
                _ => {
                    self.path(std::mem::take(&mut names));
                    colons = 0;
                }
            }
        }
        self.path(names);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !for_tests_only(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let name = item.ident.to_string();
        if item.content.is_none() {
            return self.module_in_file(item, &name);
        }
        self.place.push(name.clone());
        self.folder.push(&name);
        self.module();
        visit::visit_item_mod(self, item);
        self.place.pop();
        self.folder.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string());
        self.path(names.collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        self.tokens(&call.tokens);
    }
}

fn for_tests_only(item: &syn::Item) -> bool {
    let attributes = match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Const(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}

fn path_attribute(attributes: &[syn::Attribute]) -> Option<String> {
    attributes
        .iter()
        .find_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                syn::Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        })
}

/// Without `..` in it.
fn normal(file: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for name in file {
        if name == ".." {
            normal.pop();
        } else {
            normal.push(name);
        }
    }
    normal
}

#[cfg(test)]
mod tests;
