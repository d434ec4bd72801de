//! Tests how Cache-Control fields are parsed, and when a field is ignored.

use super::*;

fn response(value: &str) -> ResponseControl {
    ResponseControl::of(&[("Cache-Control", value)][..])
}

fn request(value: &str) -> RequestControl {
    RequestControl::of(&[("Cache-Control", value)][..])
}

#[test]
fn lifetimes_are_read_in_every_form_and_errors_are_stale() {
    let cases = [
        ("max-age=60", Some(60)),
        ("MAX-AGE=60", Some(60)),
        ("max-age=\"60\"", Some(60)),
        ("max-age = 60", Some(60)),
        ("a=b, max-age=60, unknown", Some(60)),
        ("x=\"max-age=1\", max-age=2", Some(2)),
        ("max-age=99999999999999999999999", Some(LONGEST)),
        ("max-age=-1", Some(0)),
        ("max-age=1.5", Some(0)),
        ("max-age=soon", Some(0)),
        ("max-age", Some(0)),
        ("max-age=60, max-age=10", Some(10)),
        ("max-ages=60", None),
        ("", None),
    ];
    for (value, expected) in cases {
        assert_eq!(response(value).max_age, expected, "{value:?}");
    }
}

#[test]
fn response_directives_are_found_whatever_stands_around_them() {
    let control = response("private=\"x\", NO-STORE,no-cache=\"set-cookie\",,must-revalidate");
    assert!(
        control.private
            && control.no_store
            && control.no_cache
            && control.must_revalidate
            && !control.public
    );
    let lines = [("cache-control", "public"), ("Cache-Control", "s-maxage=5, immutable")];
    let control = ResponseControl::of(&lines[..]);
    assert!(control.public && control.immutable && control.s_maxage == Some(5));
}

#[test]
fn what_is_no_directive_makes_the_field_unreadable() {
    for value in [
        "no store",
        "max-age=60, no store",
        "max-age=\"60, no-store",
        "private=\"a\\\", max-age=60",
        "max-age=60; private",
        "max-age=6\"0\"",
        "ext=\"a\"b\", max-age=60",
        "max-age: 60",
        "max-age=",
        "=60",
        "public, \"no-store\"",
    ] {
        let control = response(value);
        assert!(control.unreadable && control.no_cache, "{value}");
    }
    for value in [
        "",
        ",, max-age=60 , , public",
        "max-age = 60",
        "max-age=\"60\"",
        "max-age='60'",
        "ext=\"a, \\\"b\\\\\", no-cache=\"\"",
        "max-age=-1, max-age=1.5, x-y_z!=#%",
    ] {
        assert!(!response(value).unreadable, "{value}");
    }
    let lines = [("Cache-Control", "max-age=60"), ("Cache-Control", "no store")];
    assert!(ResponseControl::of(&lines[..]).unreadable);
}

#[test]
fn how_long_a_response_may_be_stale_is_read_and_errors_are_not_at_all() {
    let control = response("stale-while-revalidate=5, stale-if-error=\"7\"");
    assert_eq!((control.stale_while_revalidate, control.stale_if_error), (Some(5), Some(7)));
    let control = response("stale-while-revalidate, stale-if-error=soon");
    assert_eq!((control.stale_while_revalidate, control.stale_if_error), (Some(0), Some(0)));
    assert_eq!(response("stale-if-error=9, stale-if-error=3").stale_if_error, Some(3));
    assert_eq!(request("stale-if-error=4").stale_if_error, Some(4));
}

#[test]
fn only_a_gateway_reads_the_targeted_field() {
    let fields = [("Cache-Control", "max-age=5"), ("CDN-Cache-Control", "max-age=9")];
    let read = |role| ResponseControl::for_role(&fields[..], role);
    assert_eq!((read(Role::Proxy).max_age, read(Role::Proxy).targeted), (Some(5), false));
    assert_eq!((read(Role::Gateway).max_age, read(Role::Gateway).targeted), (Some(9), true));
}

#[test]
fn request_directives_with_and_without_arguments() {
    let control = request("max-stale, min-fresh=5, only-if-cached");
    assert_eq!(
        (control.max_stale, control.min_fresh, control.only_if_cached),
        (Some(u64::MAX), Some(5), true)
    );
    assert_eq!(request("max-stale=7").max_stale, Some(7));
    assert_eq!(request("max-stale=x").max_stale, Some(0));
    assert_eq!(request("min-fresh=x").min_fresh, Some(LONGEST));
}

#[test]
fn pragma_counts_only_without_cache_control() {
    assert!(RequestControl::of(&[("Pragma", "no-cache")][..]).no_cache);
    assert!(
        !RequestControl::of(&[("Pragma", "no-cache"), ("Cache-Control", "max-age=1")][..]).no_cache
    );
}

fn targeted_control(value: &str) -> Option<ResponseControl> {
    targeted(&[("CDN-Cache-Control", value)][..])
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
        assert_eq!(
            targeted_control(value).map(|control| control.max_age),
            Some(expected),
            "{value}"
        );
    }
    let flags =
        targeted_control("no-store, private=?0, no-cache=\"set-cookie\"").expect("a dictionary");
    assert!(flags.no_store && !flags.private && flags.no_cache);
}

#[test]
fn what_is_no_dictionary_counts_for_nothing() {
    for value in
        ["", " ", "max-age=60, &&&&&", "MaX-aGe=60", "max-age =60", "max-age= 60", "max-age=60,"]
    {
        assert_eq!(targeted_control(value), None, "{value:?}");
    }
    assert_eq!(targeted(&[("Cache-Control", "max-age=1")][..]), None);
}

#[test]
fn several_lines_are_one_dictionary() {
    let lines = [("CDN-Cache-Control", "max-age=60"), ("cdn-cache-control", "must-revalidate")];
    let control = targeted(&lines[..]).expect("a dictionary");
    assert!(control.max_age == Some(60) && control.must_revalidate);
    assert_eq!(
        targeted(&[("CDN-Cache-Control", "max-age=60"), ("CDN-Cache-Control", "&")][..]),
        None
    );
}
