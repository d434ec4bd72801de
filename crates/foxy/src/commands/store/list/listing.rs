//! The objects to list: filters them, keeps the first of them in the order of host and path, counts
//! the others, and prints.

use crate::commands::figures::span;
use crate::terminal;
use foxy_base::{ByteSize, WallTime, ascii_json, printable};
use foxy_rules::operator::Pattern;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const HEADING: &str = "      size      age    fresh  uses parts status URL";

/// The objects that the user wants to see.
#[derive(Debug, Default)]
pub struct Filter {
    pub host: Option<Pattern>,
    pub path: Option<Pattern>,
}

impl Filter {
    fn wants(&self, url: &str) -> bool {
        let (authority, path) = parts(url);
        let path = path.split('?').next().unwrap_or_default();
        let authority = authority.to_ascii_lowercase();
        let host = authority.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
        let host = host.map_or(&*authority, |(host, _)| host);
        let is_host = |pattern: &Pattern| {
            pattern.matches(host.as_bytes()) || pattern.matches(authority.as_bytes())
        };
        self.host.as_ref().is_none_or(is_host)
            && self.path.as_ref().is_none_or(|pattern| pattern.matches(path.as_bytes()))
    }
}

/// Returns the authority of a URL, and the path with its query.
fn parts(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split_at(rest.find('/').unwrap_or(rest.len()))
}

/// An unfinished list of objects.
pub struct Listing {
    filter: Filter,
    /// Largest number of objects to show. `None`: each object is printed when it is found.
    limit: Option<usize>,
    is_json: bool,
    now: WallTime,
    /// The first objects, by host and path. The number distinguishes objects with the same URL.
    kept: BTreeMap<(String, u64), Value>,
    found: u64,
    bytes: u64,
    unread: u64,
}

impl Listing {
    pub fn new(filter: Filter, limit: Option<usize>, is_json: bool, now: WallTime) -> Self {
        let (kept, found, bytes, unread) = (BTreeMap::new(), 0, 0, 0);
        Self { filter, limit, is_json, now, kept, found, bytes, unread }
    }

    /// Adds an object, in the JSON form of the dashboard's search. Ignores a record that has no
    /// response.
    pub fn add(&mut self, object: Value) {
        let Some(url) = object["url"].as_str().filter(|_| object["status"].is_u64()) else {
            return;
        };
        if !self.filter.wants(url) {
            return;
        }
        self.found += 1;
        self.bytes += object["stored"].as_u64().unwrap_or(0);
        let Some(limit) = self.limit else {
            if self.found == 1 && !self.is_json {
                terminal::print(HEADING);
            }
            terminal::print(&self.line(&object));
            return;
        };
        let (authority, path) = parts(url);
        self.kept.insert((format!("{authority}{path}"), self.found), object);
        if self.kept.len() > limit {
            self.kept.pop_last();
        }
    }

    /// Counts records that the search did not read.
    pub fn miss(&mut self, records: u64) {
        self.unread += records;
    }

    /// Prints the objects that are not printed yet, and the counts.
    pub fn finish(&self) {
        terminal::print(self.rest().trim_end());
    }

    fn rest(&self) -> String {
        let mut lines = Vec::new();
        if !self.kept.is_empty() && !self.is_json {
            lines.push(HEADING.to_owned());
        }
        lines.extend(self.kept.values().map(|object| self.line(object)));
        let shown = self.limit.map_or(self.found, |_| self.kept.len() as u64);
        let Self { found, bytes, unread, .. } = self;
        if self.is_json {
            let counts = json!({ "objects": found, "bytes": bytes, "shown": shown,
                "unread_records": unread });
            lines.push(counts.to_string());
            return lines.join("\n");
        }
        lines.push(match found - shown {
            0 if *found == 1 => format!("1 object, {}", ByteSize(*bytes)),
            0 => format!("{found} objects, {}", ByteSize(*bytes)),
            more => format!(
                "and {more} more; {found} objects in all, {}; --limit or --all shows more",
                ByteSize(*bytes)
            ),
        });
        if *unread > 0 {
            lines.push(format!(
                "{unread} records were not read: they left meanwhile, or the disk is slow"
            ));
        }
        lines.join("\n")
    }

    fn line(&self, object: &Value) -> String {
        if self.is_json {
            return ascii_json(&object.to_string());
        }
        let since = |name: &str| {
            let then = object[name].as_u64();
            then.map_or_else(|| "–".into(), |then| span(self.now.0.saturating_sub(then)))
        };
        let fresh = match object["expires_ms"].as_u64() {
            _ if object["purge"] == "removed" => "purged".into(),
            Some(end) if end > self.now.0 => span(end - self.now.0),
            Some(_) => "stale".into(),
            None => "–".into(),
        };
        let text =
            |name: &str| object[name].as_u64().map_or_else(|| "–".into(), |it| it.to_string());
        let marks = [("variant", " (variant)"), ("partial", " (partial)")];
        let marks = marks.iter().filter(|(name, _)| object[name] == true).map(|(_, mark)| *mark);
        let [length, stored] = ["length", "stored"].map(|name| object[name].as_u64().unwrap_or(0));
        let left = match stored < length {
            true => format!(" ({} of {} stored)", ByteSize(stored), ByteSize(length)),
            false => String::new(),
        };
        format!(
            "{:>10} {:>8} {:>8} {:>5} {:>5} {:>6} {}{}{left}",
            ByteSize(length).to_string(),
            since("received_ms"),
            fresh,
            text("uses"),
            text("parts"),
            text("status"),
            printable(object["url"].as_str().unwrap_or_default()),
            marks.collect::<String>(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(url: &str) -> Value {
        json!({ "url": url, "status": 200, "length": 2048, "stored": 2048, "parts": 1,
            "received_ms": 1000, "expires_ms": 7_261_000, "uses": 3, "variant": false,
            "partial": true, "purge": null })
    }

    fn listed(filter: Filter, limit: usize, is_json: bool) -> String {
        let mut listing = Listing::new(filter, Some(limit), is_json, WallTime(61_000));
        for url in ["http://b.test/x", "http://a.test:81/y/2?q", "https://a.test/y/1"] {
            listing.add(object(url));
        }
        listing.add(json!({ "url": null, "status": null }));
        listing.rest()
    }

    #[test]
    fn the_first_objects_by_host_and_path_are_listed_and_the_others_counted() {
        let text = listed(Filter::default(), 2, false);
        let lines: Vec<_> = text.lines().collect();
        let [heading, first, second, last] = lines[..] else { panic!("{text}") };
        assert_eq!(heading, HEADING);
        let expected =
            "     2 KiB     60 s      2 h     3     1    200 https://a.test/y/1 (partial)";
        assert_eq!(first, expected);
        assert!(second.ends_with(" http://a.test:81/y/2?q (partial)"), "{text}");
        let counts = "and 1 more; 3 objects in all, 6 KiB; --limit or --all shows more";
        assert_eq!(last, counts);
    }

    #[test]
    fn an_object_that_lost_parts_counts_with_the_bytes_that_are_left() {
        let mut listing = Listing::new(Filter::default(), Some(9), false, WallTime(61_000));
        for stored in [64 << 20, 12 << 20] {
            let mut large = object("http://a.test/large");
            (large["length"], large["stored"]) = ((64 << 20).into(), stored.into());
            listing.add(large);
        }
        let text = listing.rest();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[1].ends_with("/large (partial)"), "{text}");
        assert!(lines[2].ends_with("/large (partial) (12 MiB of 64 MiB stored)"), "{text}");
        assert_eq!(lines[3], "2 objects, 76 MiB");
    }

    #[test]
    fn patterns_choose_objects_by_host_and_path() {
        let filter = |host: Option<&str>, path: Option<&str>| {
            let read = |text: &str| text.parse().expect("a pattern");
            Filter { host: host.map(read), path: path.map(read) }
        };
        for (host, path, expected) in [
            (Some("a.test"), None, 2),
            (Some("a.test:81"), None, 1),
            (Some("*.test"), Some("/y/*"), 2),
            (None, Some("/y/2"), 1),
            (None, Some("/y"), 0),
        ] {
            let text = listed(filter(host, path), 9, true);
            let last: Value =
                serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
            assert_eq!(last["objects"], expected, "{host:?} {path:?}");
            assert_eq!(text.lines().count() as u64, expected + 1);
        }
    }
}
