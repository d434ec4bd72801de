//! Tests `foxy store map` and `foxy store inspect` with stores at rest whose scheme is not webcosm.

use super::fsck::{foxy, json, store};
use foxy_schemes::SchemeName;
use serde_json::Value;

const SCHEMES: [SchemeName; 5] = [
    SchemeName::Buddy,
    SchemeName::Coss,
    SchemeName::LazyReads,
    SchemeName::Squidmla,
    SchemeName::StreamPacketizer,
];

fn sum(list: &Value, of: impl Fn(&Value) -> &Value) -> u64 {
    list.as_array().into_iter().flatten().filter_map(|it| of(it).as_u64()).sum()
}

#[test]
fn the_map_shows_the_records_of_the_store_and_changes_nothing() {
    for scheme in SCHEMES {
        let (folder, path) = store(scheme, true);
        let control = path.join(scheme.row().control.expect("one"));
        let before = std::fs::read(&control).expect("readable");
        let (code, map) = json(&["store", "map"], &path);
        assert_eq!(code, Some(0), "{scheme}: {map}");
        let apart = map["apart"]["records"].as_u64().expect("a number");
        assert_eq!(sum(&map["cells"], |cell| &cell[6]) + apart, 25, "{scheme}: {map}");
        let (_, inspected) = json(&["store", "inspect"], &path);
        let live = |name: &str| sum(&inspected["segments"], |segment| &segment[name]);
        assert_eq!(live("live_records") + apart, 25, "{scheme}: {inspected}");
        assert_eq!(live("live_bytes"), sum(&map["cells"], |cell| &cell[7]), "{scheme}");
        let has_records = |segment: &&Value| segment["live_records"].as_u64() > Some(0);
        let segments = inspected["segments"].as_array().expect("a list");
        let first = segments.iter().find(has_records).expect("records");
        let slot = first["segment"].to_string();
        let (_, one) = json(&["store", "inspect", "--segment", &slot], &path);
        let listed = one["listed"].as_array().expect("a list");
        assert_eq!(Some(listed.len() as u64), first["live_records"].as_u64(), "{scheme}: {one}");
        assert!(listed.iter().all(|record| record["found"]["head"] == 40), "{scheme}: {one}");
        let (_, text, _) = foxy(&["store", "map"], &path);
        assert!(text.contains("w: the next record goes here"), "{scheme}: {text}");
        let page = folder.path().join("map.html");
        let (code, _, _) = foxy(&["store", "map", "--html", page.to_str().expect("a name")], &path);
        assert_eq!(code, Some(0), "{scheme}");
        assert_eq!(std::fs::read(&control).expect("readable"), before, "{scheme}");
    }
}

#[test]
fn a_killed_store_is_shown_as_the_next_start_will_find_it() {
    let (_folder, path) = store(SchemeName::StreamPacketizer, false);
    let (code, map) = json(&["store", "map"], &path);
    assert_eq!((code, sum(&map["cells"], |cell| &cell[6])), (Some(0), 25), "{map}");
    let (_folder, path) = store(SchemeName::Coss, false);
    let (code, out, err) = foxy(&["store", "map"], &path);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.contains("the next start empties the store, because its index"), "{err}");
    let (code, out, _) = foxy(&["store", "inspect"], &path);
    assert!(code == Some(0) && out.contains("the next start empties the store"), "{out}");
}

#[test]
fn a_scheme_with_a_file_for_each_object_has_no_map_and_says_so() {
    for scheme in [SchemeName::Ufs, SchemeName::MultipleDirs] {
        let (_folder, path) = store(scheme, true);
        let said =
            "keeps each object in a file of its own, so the store has no segments and no map";
        for command in ["map", "list"] {
            let (code, _, err) = foxy(&["store", command], &path);
            assert!(code == Some(2) && err.contains(said), "{err}");
        }
        let (code, out, _) = foxy(&["store", "inspect"], &path);
        assert!(code == Some(0) && out.contains(said), "{out}");
    }
}
