// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of this tree's papers: closed, the same twice, whole without its script, not longer than it may be.

mod parsed;

use std::{collections::BTreeSet, path::Path};

use parsed::{Parsed, hash, parse};
use unspin_page::{BYTES_MAX, papers::page};
use unspin_papers::Papers;

fn papers() -> Papers {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Papers::load(&root).expect("the claims can be read")
}

/// Fails when the page could load, send or run anything but its own script and style, or leads anywhere but to itself.
#[track_caller]
fn is_closed(page: &Parsed) {
    let policy = page
        .attributes("meta", "content")
        .find(|text| text.contains("default-src"));
    let (scripts, styles) = (page.texts("script"), page.texts("style"));
    assert_eq!((scripts.len(), styles.len()), (1, 1));
    let wanted = format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        hash(&scripts[0]),
        hash(&styles[0])
    );
    assert_eq!(policy, Some(wanted.as_str()));
    for (tag, attribute, value) in page.all_attributes() {
        match attribute {
            "href" => assert!(value.starts_with('#'), "{tag} {value}"),
            "xmlns" => assert_eq!((tag, value), ("svg", "http://www.w3.org/2000/svg")),
            _ => assert!(
                !value.contains("//") && !value.contains("url("),
                "{tag} {attribute}={value}"
            ),
        }
        let known = [
            "src",
            "srcset",
            "action",
            "style",
            "poster",
            "data",
            "xlink:href",
        ];
        assert!(!known.contains(&attribute), "{tag} {attribute}");
        assert!(!attribute.starts_with("on"), "{tag} {attribute}={value}");
    }
    let foreign = [
        "img", "link", "iframe", "object", "embed", "form", "input", "image", "use",
    ];
    for tag in page.tags() {
        assert!(!foreign.contains(&tag), "<{tag}>");
    }
}

#[test]
fn the_page_is_closed_short_enough_and_the_same_twice() {
    let papers = papers();
    let text = page(&papers, "0123456789ab").expect("a page");
    assert!(text.len() <= BYTES_MAX, "{}", text.len());
    assert!(
        text == page(&papers, "0123456789ab").expect("a page"),
        "two pages"
    );
    is_closed(&parse(&text));
}

#[test]
fn every_claim_and_every_measurement_is_on_it_and_links_lead_somewhere() {
    let papers = papers();
    let text = page(&papers, "0123456789ab").expect("a page");
    let parsed = parse(&text);
    let ids: Vec<&str> = parsed
        .all_attributes()
        .filter(|(_, attribute, _)| *attribute == "id")
        .map(|(.., value)| value)
        .collect();
    let known: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), known.len(), "an id stands twice");
    for target in parsed.attributes("a", "href") {
        assert!(known.contains(target.trim_start_matches('#')), "{target}");
    }
    let heads: BTreeSet<String> = parsed.texts("th").into_iter().collect();
    for claim in papers.papers.iter().flat_map(|paper| &paper.claims) {
        assert!(heads.contains(&claim.id), "{}", claim.id);
    }
    let heat = papers.heat_map().expect("a heat map");
    for number in 0..heat.entries().len() {
        assert!(known.contains(format!("m{number}").as_str()), "m{number}");
    }
    let (shown, _) = heat.shown();
    let links = parsed
        .attributes("a", "href")
        .filter(|target| target.starts_with("#m"));
    let targets: BTreeSet<&str> = links
        .filter(|target| target[2..].parse::<usize>().is_ok())
        .collect();
    assert_eq!(targets.len(), shown.len());
}

#[test]
fn failures_stand_first_in_each_paper() {
    let parsed = parse(&page(&papers(), "0123456789ab").expect("a page"));
    let verdicts: Vec<String> = parsed
        .texts("span")
        .into_iter()
        .filter(|text| text.starts_with(['✗', '?', '○', '≈', '✓', '§', '–']))
        .collect();
    let place = |text: &String| "✗?○≈✓§–".chars().position(|sign| text.starts_with(sign));
    let places: Vec<_> = verdicts
        .iter()
        .map(|text| place(text).expect("a sign"))
        .collect();
    // The table in short has each verdict once; then each paper begins anew.
    let falls = places.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert_eq!(falls, 5, "{places:?}");
    assert!(verdicts.len() > 150, "{}", verdicts.len());
}

#[test]
fn hostile_names_are_inert() {
    let mut papers = papers();
    let name = "</script><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7 * 7 }}";
    papers.papers[0].title = name.to_owned();
    papers.papers[0].claims[0].text = name.to_owned();
    let text = page(&papers, name).expect("a page");
    is_closed(&parse(&text));
    assert!(!text.contains("<img"), "an element of a name");
}
