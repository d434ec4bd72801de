//! Targeted cache control (RFC 9213): `CDN-Cache-Control`, a Dictionary Structured Field (RFC 9651
//! §3.2) that governs the caches in front of an origin in the place of Cache-Control and Expires.

use crate::cache_control::{LONGEST, ResponseControl};
use crate::fields::Fields;
use sfv::{BareItem, Dictionary, ListEntry, Parser};

/// The field meant for gateways.
const FIELD: &str = "cdn-cache-control";

/// Reads the targeted field. `None` when it is absent, empty, or not a Structured Field: then it
/// counts for nothing (§2.2).
pub(crate) fn read(response: &(impl Fields + ?Sized)) -> Option<ResponseControl> {
    if !response.has(FIELD) {
        return None;
    }
    let text = response.values(FIELD).collect::<Vec<_>>().join(&b", "[..]);
    let members =
        Parser::new(&text).parse::<Dictionary>().ok().filter(|members| !members.is_empty())?;
    let mut control = ResponseControl { targeted: true, ..ResponseControl::default() };
    for (name, value) in &members {
        if let ListEntry::Item(item) = value
            && item.bare_item == BareItem::Boolean(false)
        {
            continue;
        }
        control.apply(name.as_str().as_bytes(), || seconds(value));
    }
    Some(control)
}

/// An Integer as delta-seconds; a value of another type is 0, which is stale.
fn seconds(value: &ListEntry) -> u64 {
    match value {
        ListEntry::Item(item) => match &item.bare_item {
            BareItem::Integer(number) => {
                u64::try_from(i64::from(*number)).unwrap_or(0).min(LONGEST)
            }
            _ => 0,
        },
        ListEntry::InnerList(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(value: &str) -> Option<ResponseControl> {
        read(&[("CDN-Cache-Control", value)][..])
    }

    #[test]
    fn directives_are_read_as_a_dictionary() {
        let cases = [
            ("max-age=60", Some(60)),
            ("foobar, max-age=60;x=y", Some(60)),
            ("max-age=60, max-age=90", Some(90)),
            ("max-age=99999999999", Some(LONGEST)),
            ("max-age=-1", Some(0)),
            ("max-age=1.5", Some(0)),
            ("max-age=\"60\"", Some(0)),
            ("max-age=(60)", Some(0)),
            ("max-age", Some(0)),
            ("x", None),
        ];
        for (value, expected) in cases {
            assert_eq!(control(value).map(|control| control.max_age), Some(expected), "{value}");
        }
        let flags = control("no-store, private=?0, no-cache=\"set-cookie\"").expect("a dictionary");
        assert!(flags.no_store && !flags.private && flags.no_cache);
    }

    #[test]
    fn what_is_no_dictionary_counts_for_nothing() {
        for value in [
            "",
            " ",
            "max-age=60, &&&&&",
            "MaX-aGe=60",
            "max-age =60",
            "max-age= 60",
            "max-age=60,",
        ] {
            assert_eq!(control(value), None, "{value:?}");
        }
        assert_eq!(read(&[("Cache-Control", "max-age=1")][..]), None);
    }

    #[test]
    fn several_lines_are_one_dictionary() {
        let lines = [("CDN-Cache-Control", "max-age=60"), ("cdn-cache-control", "must-revalidate")];
        let control = read(&lines[..]).expect("a dictionary");
        assert!(control.max_age == Some(60) && control.must_revalidate);
        assert_eq!(
            read(&[("CDN-Cache-Control", "max-age=60"), ("CDN-Cache-Control", "&")][..]),
            None
        );
    }
}
