// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs in C11 and C++17 against the installed library: those of docs/libunspin.md, and the standard library's lock types.

use std::{fs, path::PathBuf, process::Command};

use crate::tree::{Installed, Linked, has, root, succeed};

/// The programs of the page in a language, each with what the page says that it prints.
fn of_the_page(language: &str) -> Vec<(String, String)> {
    let page = fs::read_to_string(root().join("docs/libunspin.md")).expect("the page");
    let mark = format!("```{language}\n");
    let programs: Vec<(String, String)> = page
        .split(&mark)
        .skip(1)
        .map(|text| {
            let (program, rest) = text.split_once("\n```").expect("the block ends");
            let printed = rest.split("```text\n").nth(1).expect("what it prints");
            let printed = printed.split("```").next().expect("the block ends");
            (format!("{program}\n"), printed.to_owned())
        })
        .collect();
    assert!(!programs.is_empty(), "no {language}");
    programs
}

fn source(installed: &Installed, name: &str, text: &str) -> PathBuf {
    let path = installed.folder.path().join(name);
    fs::write(&path, text).expect("a source");
    path
}

#[test]
fn programs_of_the_page_run() {
    let installed = Installed::new();
    for (text, printed) in of_the_page("c") {
        let sources = [source(&installed, "program.c", &text)];
        let runs = [
            ("cc", Linked::Shared),
            ("cc", Linked::Static),
            ("clang-19", Linked::Shared),
        ];
        for (compiler, how) in runs {
            let program = installed.compile(compiler, "-std=c11 -Wpedantic -O2", &sources, how);
            if how == Linked::Shared {
                let out = succeed(&mut installed.command(&program));
                assert_eq!(out, printed, "{compiler}");
            } else {
                // Without the library's folder: all is in the program.
                assert_eq!(succeed(&mut Command::new(&program)), printed, "{compiler}");
            }
        }
    }
    for (text, printed) in of_the_page("cpp") {
        let sources = [source(&installed, "program.cpp", &text)];
        let program = installed.compile("g++", "-std=c++17 -Wpedantic", &sources, Linked::Static);
        assert_eq!(succeed(&mut Command::new(&program)), printed);
    }
}

#[test]
fn the_standard_librarys_lock_types_take_every_class() {
    let installed = Installed::new();
    let sources = [root().join("lib/tests/standard.cpp")];
    let program = installed.compile("g++", "-std=c++17 -Wpedantic", &sources, Linked::Shared);
    assert_eq!(succeed(&mut installed.command(&program)), "ok\n");
}

/// CMake is no package of set-up: it is large, and what it finds is what pkg-config finds.
#[test]
fn cmake_finds_both_libraries() {
    if !has("cmake") {
        println!("SKIPPED: there is no cmake (apt-get install cmake)");
        return;
    }
    let installed = Installed::new();
    let (text, printed) = of_the_page("c").remove(0);
    source(&installed, "program.c", &text);
    source(
        &installed,
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.18)\nproject(test C)\nfind_package(unspin 0.1 REQUIRED)\n\
         find_package(unspin 0.9 QUIET)\nif(unspin_FOUND)\n  message(FATAL_ERROR \"0.9 was found\")\nendif()\n\
         add_executable(shared program.c)\ntarget_link_libraries(shared unspin::unspin)\n\
         add_executable(static program.c)\ntarget_link_libraries(static unspin::unspin_static)\n",
    );
    let build = installed.folder.path().join("cmake");
    succeed(
        Command::new("cmake")
            .arg("-S")
            .arg(installed.folder.path())
            .arg("-B")
            .arg(&build)
            .arg(format!(
                "-Dunspin_DIR={}",
                installed.libraries().join("cmake/unspin").display()
            )),
    );
    succeed(Command::new("cmake").arg("--build").arg(&build));
    assert_eq!(
        succeed(&mut installed.command(&build.join("shared"))),
        printed
    );
    assert_eq!(succeed(&mut Command::new(build.join("static"))), printed);
    let static_needs = succeed(
        Command::new("readelf")
            .args(["-d", "--wide"])
            .arg(build.join("static")),
    );
    assert!(!static_needs.contains("libunspin"), "{static_needs}");
}
