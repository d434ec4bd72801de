//! Tests the first steps in the README. Runs the steps in order, while processes of earlier steps
//! still run. Replaces ports, the temporary folder and the page of example.com, and pastes
//! everything else unchanged.

use super::pasted::{Stage, Terminal, blocks, read};
use crate::support::commands::signal;
use std::io::{BufRead, BufReader};

/// Returns the command that `make run` starts, with the tested binary instead of a new build.
fn make_run() -> String {
    let makefile = read("Makefile");
    let (_, recipe) = makefile.split_once("\nrun:\n\t").expect("a target `run`");
    let recipe = recipe.lines().next().expect("a recipe");
    let (build, arguments) = recipe.split_once(" -- ").expect("arguments of foxy");
    assert!(build.starts_with("cargo run --profile quick --bin foxy "), "{recipe}");
    format!("exec target/quick/foxy {arguments}")
}

#[test]
fn each_step_of_the_readme_works_when_it_is_pasted_in_order() {
    let readme = read("README.md");
    let (_, section) = readme.split_once("\n## The first five minutes\n").expect("a section");
    let section = section.split("\n## ").next().expect("a section");
    let steps: Vec<String> = blocks(section)
        .into_iter()
        .filter(|block| block.mark.is_none())
        .map(|block| block.script)
        .collect();
    assert!(steps.len() >= 6 && steps[0] == "make run\n", "{steps:?}");
    let stage = Stage::set(&readme, "");

    let mut first = Terminal(stage.shell(&make_run()).spawn().expect("bash runs"));
    let mut reports = BufReader::new(first.0.stderr.take().expect("piped"));
    let mut welcome = String::new();
    while !welcome.contains("\n  curl ") {
        assert!(
            reports.read_line(&mut welcome).expect("text") > 0,
            "foxy did not start: {welcome}"
        );
    }
    // The start-up message must name the proxy's port as in the README, and the command to try
    // next.
    let proxy = format!("  proxy       {}", stage.played("http://127.0.0.1:3128"));
    assert!(welcome.contains(&proxy), "{welcome}");
    let next = welcome.lines().last().expect("what to type next");
    let page = stage.played("http://example.com/");
    let typed = next.replace("http://example.com/", &page.replace("/o/1/", "/o/2/"));
    let said = stage.paste(&format!("{typed}\n{typed}"));
    assert!(said.contains("Cache-Status: foxy; fwd=uri-miss; fwd-status=200; stored"), "{said}");
    assert!(said.contains("Cache-Status: foxy; hit; ttl="), "{said}");

    let script: String = steps[1..].iter().map(|step| stage.played(step)).collect();
    let said = stage.paste(&script);
    for promised in ["foxy; fwd=uri-miss; fwd-status=200; stored", "foxy; hit; ttl="] {
        assert!(readme.contains(&format!("`{promised}")), "{promised}");
        assert!(said.contains(&format!("Cache-Status: {promised}")), "{said}");
    }
    let wrong = said.lines().find(|line| line.starts_with("wrong_bytes ")).expect("a load was run");
    assert_eq!(wrong.split_whitespace().nth(1), Some("0"), "{said}");
    let left: Vec<_> = std::fs::read_dir(stage.path("tmp")).expect("there").flatten().collect();
    assert!(left.is_empty(), "the last step removes what the others made: {left:?}");

    signal(first.0.id(), "TERM");
    assert!(first.0.wait().expect("a child").success());
}
