// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page as a browser reads it: what it allows itself, what names can do in it, how large it is.

mod common;
mod parsed;

use common::{Planted, planted};
use parsed::{Parsed, hash, parse};
use unspin_page::BYTES_MAX;

/// Fails when the page could load, send or run anything but its own script and style.
#[track_caller]
fn is_closed(page: &Parsed) {
    let policy = page
        .attributes("meta", "content")
        .find(|text| text.contains("default-src"));
    let policy = policy.expect("a policy");
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    assert!(
        !policy.contains("unsafe") && !policy.contains("http") && !policy.contains('*'),
        "{policy}"
    );
    let (scripts, styles) = (page.texts("script"), page.texts("style"));
    // The data, and the script that draws it.
    assert_eq!((scripts.len(), styles.len()), (2, 1));
    assert!(
        policy.contains(&format!("script-src {}", hash(&scripts[1]))),
        "{policy}"
    );
    assert!(
        policy.contains(&format!("style-src {}", hash(&styles[0]))),
        "{policy}"
    );
    assert!(
        policy.contains("base-uri 'none'; form-action 'none'"),
        "{policy}"
    );
    let types: Vec<_> = page.attributes("script", "type").collect();
    assert_eq!(types, ["application/json"]);
    for (tag, attribute, value) in page.all_attributes() {
        assert!(
            !["src", "href", "srcset", "action", "style", "poster", "data"].contains(&attribute),
            "{tag} {attribute}"
        );
        assert!(!attribute.starts_with("on"), "{tag} {attribute}={value}");
    }
    let known = [
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "ul", "li", "small", "p",
        "span", "canvas", "table", "tr", "th", "td", "footer", "script",
    ];
    for tag in page.tags() {
        assert!(known.contains(&tag), "<{tag}>");
    }
}

#[test]
fn the_page_is_closed_and_the_same_twice() {
    let planted = planted(&Planted::default());
    let page = planted.page(false);
    is_closed(&parse(&page));
    assert_eq!(planted.page(false), page);
    assert!(page.contains("this is steal only"), "{page}");
}

#[test]
fn names_are_inert() {
    let hostile = [
        "</script><script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "{{ 7 * 7 }}{% raw %}",
        "<!--<script>\u{2028}'&lt;",
        "\u{1b}[2J\u{202e}\n\0evil",
    ];
    let planted = planted(&Planted {
        names: hostile.iter().map(|name| (*name).to_owned()).collect(),
        ..Planted::default()
    });
    let page = planted.page(false);
    let parsed = parse(&page);
    is_closed(&parsed);
    let lines = parsed.texts("li").join("\n");
    for name in &hostile[..4] {
        assert!(
            lines.contains(&name.replace('\u{2028}', "?")),
            "{name:?} in {lines}"
        );
    }
    assert!(lines.contains("?[2J???evil"), "{lines}");
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}') && !page.contains('\u{2028}'));
    // The data says the same names, and ends no block.
    let data = &parsed.texts("script")[0];
    assert!(
        data.contains(r"\u003c/script\u003e\u003cscript\u003e") && !data.contains('<'),
        "{data}"
    );
}

#[test]
fn redacted_pages_have_no_name() {
    let planted = planted(&Planted {
        names: vec!["secret-web".into(), "secret-db".into()],
        ..Planted::default()
    });
    assert!(planted.page(false).contains("secret-web"));
    let page = planted.page(true);
    assert!(!page.contains("secret"), "{page}");
    assert!(page.contains("vm-1") && page.contains("vm-2"));
    assert_eq!(planted.page(true), page);
}

#[test]
fn a_million_events_of_a_large_host_fit() {
    let planted = planted(&Planted {
        names: (0..300)
            .map(|vm| format!("{vm} {}", "<&\u{1b}ü".repeat(2_500)))
            .collect(),
        vcpus: 8,
        cpus: 64,
        events: 1_000_000,
        length_ns: 600_000_000_000,
    });
    let page = planted.page(false);
    assert!(page.len() <= BYTES_MAX, "{}", page.len());
    assert!(
        page.len() > BYTES_MAX / 8,
        "{}: hardly anything is shown",
        page.len()
    );
    is_closed(&parse(&page));
    assert!(page.contains("more VMs lost less and are not shown"));
}

#[test]
fn a_recording_of_nothing_says_so() {
    let planted = planted(&Planted {
        names: Vec::new(),
        events: 0,
        ..Planted::default()
    });
    let page = planted.page(false);
    is_closed(&parse(&page));
    assert!(page.contains("No VM was seen in this recording."), "{page}");
}
