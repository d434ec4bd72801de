//! Checks a document in Prometheus' text format, as strictly as promtool.

use std::collections::BTreeSet;

/// Panics if the text breaks the format. Each metric family must occur once, and begin with HELP
/// and TYPE. Names, labels and values must be valid, and no sample may be repeated. The
/// buckets of a histogram must grow up to its count.
pub fn check(text: &str) {
    assert!(text.ends_with('\n'), "the last line has no end");
    let (mut families, mut samples) = (BTreeSet::new(), BTreeSet::new());
    let (mut family, mut counter, mut histogram) = (String::new(), false, false);
    let mut buckets = 0.0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) =
                rest.split_once(' ').unwrap_or_else(|| panic!("no help in {line:?}"));
            assert!(families.insert(name.to_owned()), "{name} comes twice");
            assert!(help.ends_with('.'), "the help of {name} is not a sentence: {help:?}");
            let kind = lines.next().and_then(|line| line.strip_prefix(&format!("# TYPE {name} ")));
            counter = kind == Some("counter");
            histogram = kind == Some("histogram");
            let known = counter || histogram || kind == Some("gauge");
            assert!(known, "{name} has no type after its help");
            assert_eq!(counter, name.ends_with("_total"), "{name} is of kind {kind:?}");
            family = name.to_owned();
            continue;
        }
        let (series, value) =
            line.rsplit_once(' ').unwrap_or_else(|| panic!("no value in {line:?}"));
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number in {line:?}"));
        assert!(!counter || value >= 0.0, "a counter below zero: {line:?}");
        assert!(samples.insert(series.to_owned()), "{series} comes twice");
        let (name, labels) =
            series.split_once('{').map_or((series, None), |(name, rest)| (name, Some(rest)));
        let part = name.strip_prefix(&family).filter(|part| part.is_empty() != histogram);
        match part.unwrap_or_else(|| panic!("a sample outside its family: {line:?}")) {
            "_bucket" if line.contains("le=\"0.000016\"") => buckets = value,
            "_bucket" => {
                assert!(value >= buckets, "a bucket shrinks: {line:?}");
                buckets = value;
            }
            "_count" => assert_eq!(value, buckets, "{line:?}"),
            _ => {}
        }
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'), "{name:?}");
        if let Some(labels) = labels {
            let labels =
                labels.strip_suffix('}').unwrap_or_else(|| panic!("open labels in {line:?}"));
            for pair in labels.split(',') {
                let (label, value) =
                    pair.split_once('=').unwrap_or_else(|| panic!("no label in {line:?}"));
                let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
                assert!(label.bytes().all(is_name), "{label:?}");
                let is_quoted = value.len() >= 2 && value.starts_with('"') && value.ends_with('"');
                assert!(is_quoted, "{line:?}");
            }
        }
    }
    assert!(!samples.is_empty(), "nothing is exposed");
}
