// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make test-long`, where Debian's chromium is installed: the pages of `unspin report` in a browser without a screen. Nothing is
//! loaded, no script fails, keys move through the heat maps, letters can be read on their colours, and paper is wide enough.

mod browser;
#[path = "../common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};

use browser::Browser;
use common::{repository, unspin};
use serde_json::{Value, json};
use unspin_testbed::self_test;

/// The browser; nothing to test where there is none; says so.
fn browser() -> Option<Browser> {
    let browser = Browser::start();
    if browser.is_none() {
        self_test::not_tested("there is no chromium (`apt-get install chromium`)");
    }
    browser
}

/// The page of this tree's papers.
fn papers(folder: &Path) -> PathBuf {
    let page = folder.join("papers.html");
    let (tree, out) = (repository(), page.to_str().expect("a name").to_owned());
    let tree = tree.to_str().expect("a name");
    let ended = unspin(&[
        "report", "--papers", "--tree", tree, "--out", &out, "--json",
    ]);
    assert_eq!(ended.status, 0, "{ended:#?}");
    page
}

#[test]
fn the_page_of_the_papers_in_a_browser() {
    let Some(mut browser) = browser() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    browser.open(&papers(folder.path()));
    let title = browser.value("document.title");
    assert_eq!(title, "Five papers, one model");
    assert_eq!(
        browser.value("document.querySelectorAll('table.heat').length"),
        5
    );
    keys_move_through_a_map(&mut browser);
    letters_can_be_read(&mut browser);
    paper_is_wide_enough(&mut browser);
    browser.nothing_went_wrong();
}

/// Arrows go to cells with figures, the line below says their measurement, Enter goes to it, the tab key leaves the map.
fn keys_move_through_a_map(browser: &mut Browser) {
    let map = "document.querySelectorAll('table.heat')[2]";
    browser.value(&format!("{map}.querySelector('a[tabindex=\"0\"]').focus()"));
    let place = "[document.activeElement.closest('tr').rowIndex, document.activeElement.closest('td').cellIndex]";
    let at = |browser: &mut Browser| -> (i64, i64) {
        let place = browser.value(place);
        (
            place[0].as_i64().expect("a row"),
            place[1].as_i64().expect("a column"),
        )
    };
    let begin = at(browser);
    browser.key("ArrowDown");
    let below = at(browser);
    assert!(
        below.0 > begin.0 && below.1 == begin.1,
        "{begin:?} {below:?}"
    );
    browser.key("ArrowRight");
    let right = at(browser);
    assert!(
        right.0 == below.0 && right.1 > below.1,
        "{below:?} {right:?}"
    );
    browser.key("ArrowLeft");
    browser.key("ArrowUp");
    assert_eq!(at(browser), begin);
    let says = browser.value("document.getElementById('says').textContent");
    assert!(
        says.as_str()
            .is_some_and(|says| says.matches('|').count() == 7),
        "{says}"
    );
    let target = browser.value("document.activeElement.getAttribute('href')");
    browser.key("Enter");
    assert_eq!(browser.value("location.hash"), target);
    assert_eq!(
        browser.value("document.querySelector(':target').tagName"),
        "TR"
    );
    browser.value(&format!("{map}.querySelector('a[tabindex=\"0\"]').focus()"));
    browser.key("Tab");
    assert_eq!(
        browser.value(&format!("{map}.contains(document.activeElement)")),
        false
    );
}

/// WCAG 2.1, 1.4.3: at least 4.5 to 1 between letters and what is behind them.
fn letters_can_be_read(browser: &mut Browser) {
    let contrasts = browser.value(
        "(() => {
          const light = (colour) => {
            const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
              .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          return [...document.querySelectorAll('p.key i')].map((step) => {
            const style = getComputedStyle(step), two = [light(style.color), light(style.backgroundColor)].sort((a, b) => b - a);
            return (two[0] + 0.05) / (two[1] + 0.05);
          });
        })()",
    );
    let contrasts: Vec<f64> = serde_json::from_value(contrasts).expect("numbers");
    assert_eq!(contrasts.len(), 8);
    assert!(
        contrasts.iter().all(|contrast| *contrast >= 4.5),
        "{contrasts:?}"
    );
}

/// A3 in landscape less its margins, at 96 points an inch.
fn paper_is_wide_enough(browser: &mut Browser) {
    const WIDTH: u32 = (420 - 20) * 96 * 10 / 254;
    browser.call("Emulation.setEmulatedMedia", json!({"media": "print"}));
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        json!({"width": WIDTH, "height": 1000, "deviceScaleFactor": 1, "mobile": false}),
    );
    let widest = browser.value(
        "Math.max(...[...document.querySelectorAll('table, svg')].map((one) => one.getBoundingClientRect().right))",
    );
    assert!(widest.as_f64() <= Some(f64::from(WIDTH)), "{widest}");
    let printed = browser.call("Page.printToPDF", json!({"preferCSSPageSize": true}));
    let data = printed["data"].as_str().expect("a document");
    // "%PDF", as base64.
    assert!(
        data.starts_with("JVBER") && data.len() > 100_000,
        "{}",
        data.len()
    );
}

#[test]
fn the_page_of_a_recording_in_a_browser() {
    let Some(mut browser) = browser() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| {
        folder
            .path()
            .join(name)
            .to_str()
            .expect("a name")
            .to_owned()
    };
    let scenario = repository().join("scenarios/demo/2x4-ticket.toml");
    let scenario = scenario.to_str().expect("a name");
    let (recording, page) = (path("recording"), path("page.html"));
    for arguments in [
        &[
            "lab",
            "run",
            scenario,
            "--duration",
            "400ms",
            "--record",
            &recording,
        ][..],
        &["report", &recording, "--out", &page],
    ] {
        let ended = unspin(arguments);
        assert_eq!(ended.status, 0, "{ended:#?}");
    }
    browser.open(Path::new(&page));
    let drawn: Value = browser.value(
        "[...document.querySelectorAll('canvas')].filter((canvas) => !canvas.hidden).map((canvas) => canvas.height)",
    );
    let heights: Vec<u32> = serde_json::from_value(drawn).expect("heights");
    assert!(
        heights.len() > 2 && heights.iter().all(|height| *height > 0),
        "{heights:?}"
    );
    browser.nothing_went_wrong();
}
