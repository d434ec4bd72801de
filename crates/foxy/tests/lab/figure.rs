//! Tests the program `foxy figure`: its table, its files, and its error for unknown names.

use crate::support::commands::foxy;

fn figure(arguments: &[&str]) -> (Option<i32>, String, String) {
    foxy(&[&["figure"], arguments].concat())
}

#[test]
fn a_figure_is_a_table_pictures_and_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (out, html, json) = (path("out"), path("page.html"), path("run.jsonl"));
    let files = ["--out", &out, "--html", &html, "--json", &json];
    let (code, text, err) =
        figure(&[&["001-table1", "001-fig9", "--scale", "0.02"][..], &files].concat());
    assert_eq!(code, Some(0), "{err}");
    assert!(text.contains("Calibration") && text.contains("URL-write"), "{text}");
    let reasons = "no verdict: fewer than 3 seeds, one scale, input fitted to the quoted value";
    assert!(text.contains(reasons), "{text}");
    let read = |path: &str| std::fs::read_to_string(path).expect("written");
    assert!(read(&format!("{out}/001-fig9.svg")).starts_with("<svg"));
    assert!(read(&format!("{out}/001-fig9.csv")).lines().count() > 100);
    let table = read(&format!("{out}/001-table1.svg"));
    assert!(table.contains("<title>URL-read: the paper: 3.977 % of URL-gets</title>"), "{table}");
    assert_eq!(read(&format!("{out}/001-table1-rows.csv")).lines().count(), 4);
    let page = read(&html);
    assert!(page.contains("001-fig9") && page.contains(reasons));
    assert!(page.find("<figure>") < page.find("<table>"), "the first chart is before the tables");
    let records = read(&json);
    assert!(records.contains(r#""reasons":["few-seeds","one-scale","fitted-to-quote"]"#));
    assert!(records.lines().next().expect("a setup").contains("\"scale\":0.02"), "{records}");
    assert_eq!(records.matches("\"kind\":\"picture\"").count(), 1, "{records}");
    let (code, drawn, err) = foxy(&["report", &json, "--out", &path("again")]);
    assert_eq!((code, drawn.trim()), (Some(0), "run.html: 2 pictures"), "{err}");
    let again = read(&path("again/run-1.svg"));
    assert_eq!(again, read(&format!("{out}/001-fig9.svg")), "a record gives the same picture");
    assert_eq!(
        records.lines().filter(|line| line.contains("\"kind\":\"figure-row\"")).count(),
        4,
        "{records}"
    );
}

#[test]
fn an_unknown_figure_is_answered_with_those_there_are() {
    let (code, _, text) = figure(&["001-fig99"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("001-fig99") && text.contains("001-table2"), "{text}");
}

#[test]
fn a_scale_that_makes_no_sense_is_refused() {
    for scale in ["0", "7", "-1", "NaN"] {
        let (code, ..) = figure(&["001-table1", &format!("--scale={scale}")]);
        assert_eq!(code, Some(2), "{scale}");
    }
}

#[test]
fn a_place_that_cannot_be_written_to_is_found_before_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("written");
    let below = file.join("below");
    for option in ["--out", "--markdown", "--html", "--json"] {
        let (code, out, text) = figure(&["001-table1", option, below.to_str().expect("UTF-8")]);
        assert_eq!(code, Some(2), "{option}: {text}");
        assert!(text.contains(option) && text.contains("cannot be written"), "{option}: {text}");
        assert!(out.is_empty(), "{option}: nothing was run");
    }
}

#[test]
fn a_folder_in_which_another_run_measures_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let in_use = std::fs::File::open(folder.path()).expect("opens");
    in_use.try_lock().expect("nobody has it");
    let (code, _, text) =
        figure(&["001-table2-disk", "--folder", folder.path().to_str().expect("UTF-8")]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("--folder") && text.contains("another foxy measures there"), "{text}");
}

#[test]
fn a_folder_that_a_running_foxy_has_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let _in_use = foxy_device::Root::open(folder.path()).expect("opens");
    let (code, _, text) =
        figure(&["001-table2-disk", "--folder", folder.path().to_str().expect("UTF-8")]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("--folder") && text.contains("in use"), "{text}");
}
