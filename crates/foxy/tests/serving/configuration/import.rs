//! Tests `foxy import` as an operator uses it: files, exit codes, and the new rules in a running
//! foxy.

use crate::support::commands::{command, foxy as run};
use crate::support::{Foxy, Origin, request};
use std::io::Write;
use std::process::Stdio;

const OFFICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/import/squid-office.conf");
const OPEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/import/squid-open.conf");

#[test]
fn explain_shows_each_rule_of_an_imported_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("foxy.toml");
    let file = file.to_str().expect("UTF-8");
    let (code, _, report) = run(&["import", OFFICE, "--output", file]);
    assert_eq!(code, Some(1), "the sample has denials that foxy lacks: {report}");
    assert!(report.contains("is not written without --accept-losses"), "{report}");
    assert!(!std::path::Path::new(file).exists());
    let (code, _, report) = run(&["import", OFFICE, "--output", file, "--accept-losses"]);
    assert_eq!(code, Some(0), "{report}");
    let log = folder.path().join("access.log");
    let log = log.to_str().expect("UTF-8");
    let flags = ["--config", file, "--access-log", log, "--object-limit", "8M"];
    let foxy = Foxy::start(&folder.path().join("store"), &flags);
    let admin = foxy.admin.to_string();
    let url = "http://a.example/x.iso";
    let (_, shown, error) =
        run(&["explain", url, "--from", "10.20.1.1", "--json", "--admin", &admin]);
    let shown: serde_json::Value =
        serde_json::from_str(&shown).unwrap_or_else(|_| panic!("{error}"));
    let shown = shown.to_string();
    let text = std::fs::read_to_string(file).expect("written");
    let table: toml::Table = text.parse().expect("TOML");
    let rules = table["rule"].as_array().expect("rules");
    assert_eq!(rules.len(), 17);
    for rule in rules {
        let name = serde_json::Value::from(rule["name"].as_str().expect("a name")).to_string();
        assert!(shown.contains(name.trim_matches('"')), "{name} is not in {shown}");
    }
}

#[test]
fn an_output_file_is_replaced_only_by_force() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("foxy.toml");
    let path = file.to_str().expect("UTF-8");
    std::fs::write(&file, "old").expect("written");
    let (code, _, error) = run(&["import", OPEN, "--output", path]);
    assert_eq!(code, Some(2));
    assert!(error.contains("--force replaces the file"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).expect("there"), "old");
    let (code, printed, _) = run(&["import", OPEN, "--output", path, "--force"]);
    assert_eq!((code, printed.as_str()), (Some(0), ""));
    assert!(std::fs::read_to_string(&file).expect("there").contains("localhost:3128"));
}

#[test]
fn standard_input_and_json_are_for_scripts() {
    let mut import = command(&["import", "-", "--json"]);
    let import = import.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = import.spawn().expect("started");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(b"http_port 127.0.0.1:3128\nworkers 4\n").expect("written");
    drop(input);
    let output = child.wait_with_output().expect("ended");
    assert!(output.status.success());
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(object["from"], "squid");
    assert!(object["toml"].as_str().is_some_and(|text| text.contains("127.0.0.1:3128")));
    let leftovers = object["leftovers"].as_array().expect("a list");
    let workers = leftovers.iter().find(|leftover| leftover["line"] == 2).expect("listed");
    assert_eq!(
        (&workers["kind"], &workers["directive"]),
        (&"not-needed".into(), &"workers 4".into())
    );
    assert_eq!(output.stderr, b"");
}

#[test]
fn the_locations_of_an_imported_file_lead_to_their_servers() {
    let (pages, api) = (Origin::start(), Origin::start());
    let server = |origin: &Origin| {
        let url = origin.url("");
        url.trim_start_matches("http://").trim_end_matches('/').to_owned()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (old, new) = (path("nginx.conf"), path("foxy.toml"));
    let content = format!(
        "http {{ upstream pages {{ server {}; }}\nserver {{ listen 80; server_name shop.example;\n\
         location / {{ proxy_pass http://pages; }}\n\
         location /api/ {{ proxy_pass http://{}; deny all; }}\n\
         location /v2/ {{ proxy_pass http://{}; }} }} }}\n",
        server(&pages),
        server(&api),
        server(&api),
    );
    std::fs::write(&old, content).expect("written");
    let (code, _, report) = run(&["import", &old, "--output", &new]);
    assert_eq!(code, Some(0), "{report}");
    let store = folder.path().join("store");
    let foxy = Foxy::start(&store, &["--config", &new, "--access-log", &path("log")]);
    for (target, status, asked) in
        [("/x", 200, (1, 0)), ("/v2/x", 200, (1, 1)), ("/api/x", 403, (1, 1))]
    {
        let text =
            format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n");
        assert_eq!(request(foxy.proxy, &text).status, status, "{target}");
        assert_eq!((pages.asked(), api.asked()), asked, "{target}");
    }
}
