//! Tests that a response or Vary list is unchanged after it is encoded as a record and decoded.

use super::*;

fn stored(body: StoredBody) -> Stored {
    stored_for(Role::Proxy, body)
}

fn stored_for(role: Role, body: StoredBody) -> Stored {
    let mut head = ResponseHead::new(200);
    head.headers.append("Cache-Control", "max-age=60");
    head.headers.append("CDN-Cache-Control", "max-age=90");
    head.headers.append("X-Twice", "1");
    head.headers.append("x-twice", "2");
    let times = StoredTimes { received: WallTime(5_000), initial_age: 3 };
    Stored::new(Bytes::from_static(b"http://a/"), &head, role.into(), times, 4, body)
}

#[test]
fn a_response_reads_back_as_it_was() {
    for body in [StoredBody::Whole(Bytes::from_static(b"body")), StoredBody::Parts { fill: 9 }] {
        let before = stored(body.clone());
        let record = match &body {
            StoredBody::Whole(bytes) => bytes.clone(),
            StoredBody::Parts { .. } => Bytes::new(),
        };
        let entry = decode(
            &CacheKey::new("http://a/"),
            &encode_response(&before),
            record,
            &Policies::default(),
        );
        let Some(Entry::Response(after)) = entry else { panic!("{entry:?}") };
        assert_eq!((after.head, after.wire, after.times), (before.head, before.wire, before.times));
        assert_eq!((after.lifetime, after.length, after.body), (60, 4, body));
    }
}

#[test]
fn what_a_targeted_field_governs_is_so_when_it_is_read_back() {
    let before = stored_for(Role::Gateway, StoredBody::Whole(Bytes::from_static(b"body")));
    let entry = decode(
        &CacheKey::new("http://a/"),
        &encode_response(&before),
        Bytes::from_static(b"body"),
        &Policies::default(),
    );
    let Some(Entry::Response(after)) = entry else { panic!("{entry:?}") };
    assert_eq!((before.lifetime, after.lifetime, after.control.targeted), (90, 90, true));
}

#[test]
fn another_key_a_cut_or_a_wrong_length_is_nothing() {
    let head = encode_response(&stored(StoredBody::Whole(Bytes::from_static(b"body"))));
    let key = CacheKey::new("http://a/");
    assert!(
        decode(
            &CacheKey::new("http://b/"),
            &head,
            Bytes::from_static(b"body"),
            &Policies::default()
        )
        .is_none()
    );
    assert!(decode(&key, &head, Bytes::from_static(b"bod"), &Policies::default()).is_none());
    for length in 0..head.len() {
        if let Some(Entry::Response(found)) =
            decode(&key, &head[..length], Bytes::from_static(b"body"), &Policies::default())
        {
            // If the record is cut off between two header lines, the decoder only finds fewer
            // lines. It cannot notice the cut. The store's checksum detects such a cut.
            assert!(found.head.headers.len() < 4, "cut at {length}");
        }
    }
}

#[test]
fn a_vary_list_reads_back_and_its_salt_parts_variants() {
    let key = CacheKey::new("http://a/");
    let list = VaryList { vary: Vary::from_names(["accept".into(), "cookie".into()]), salt: 7 };
    let entry = decode(&key, &encode_varies(&key, &list), Bytes::new(), &Policies::default());
    assert!(matches!(entry, Some(Entry::Varies(_, found)) if found == list));
    let other = VaryList { salt: 8, ..list.clone() };
    assert_ne!(key.variant(&list, b"x").hash, key.variant(&other, b"x").hash);
    assert_eq!(key.list_of(&key.variant(&list, b"x"), list.vary.clone()), Some(list.clone()));
    assert_eq!(key.list_of(&key, list.vary), None);
}

/// Encodes a head with these fields as a record, and checks that decoding returns the same head.
/// Returns the head of the record.
fn form(fields: &[(&str, &str)]) -> Bytes {
    let mut head = ResponseHead::new(200);
    fields.iter().for_each(|(name, value)| head.headers.append(name, value));
    let times = StoredTimes { received: WallTime(1_795_219_200_000), initial_age: 0 };
    let body = StoredBody::Whole(Bytes::new());
    let before =
        Stored::new(Bytes::from_static(b"http://a/"), &head, Role::Proxy.into(), times, 0, body);
    let record = encode_response(&before);
    let entry = decode(&CacheKey::new("http://a/"), &record, Bytes::new(), &Policies::default());
    let Some(Entry::Response(after)) = entry else { panic!("{fields:?}") };
    assert_eq!(after.wire, before.wire);
    record
}

#[test]
fn names_and_dates_read_back_to_the_letter_however_they_are_written() {
    let plain = form(&[]).len();
    let cost = |name: &str, value: &str| form(&[(name, value)]).len() - plain;
    assert_eq!(cost("Date", "Sun, 22 Nov 2026 13:05:25 GMT"), 6);
    assert_eq!(cost("date", "Fri, 31 Dec 9999 23:59:59 GMT"), 1 + 6);
    assert_eq!(cost("x-powered-by", "a"), 3);
    for date in [
        "Mon, 22 Nov 2026 13:05:25 GMT",
        "sun, 22 Nov 2026 13:05:25 GMT",
        "Wed, 31 Dec 1969 23:59:59 GMT",
        "Sun, 22 Nov 2026 13:05:60 GMT",
        "Sun, 22 Nov 12026 13:05:25 GM",
        "xxxxxxxxxxxxxxxxxxxxxxxxx GMT",
    ] {
        assert_eq!(cost("Expires", date), 2 + date.len(), "{date}");
    }
    assert_eq!(cost("DATE", ""), 1 + 1 + 4 + 1);
    assert_eq!(cost("X-Of-Nobody", "a"), 1 + 1 + 11 + 2);
    NAMES
        .iter()
        .for_each(|name| assert_eq!(cost(name, ""), cost(&name.to_lowercase(), ""), "{name}"));
}

#[test]
fn well_known_fields_take_less_than_half_of_what_they_take_on_the_wire() {
    let fields = [
        ("Date", "Sun, 22 Nov 2026 13:05:25 GMT"),
        ("Server", "nginx"),
        ("Content-Type", "text/html"),
        ("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT"),
        ("ETag", "\"6955b900-264\""),
        ("Cache-Control", "max-age=3600"),
        ("Accept-Ranges", "bytes"),
    ];
    let wire: usize = fields.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    let fields = form(&fields).len() - form(&[]).len();
    assert!(2 * fields < wire, "{fields} of {wire}");
}

#[test]
fn bytes_of_nobody_are_nothing_and_no_panic() {
    let key = CacheKey::new("a");
    let mut random = foxy_base::Random::new(11);
    for _ in 0..20_000 {
        let mut bytes = vec![0; random.below(80) as usize];
        random.fill(&mut bytes);
        let start = [RESPONSE + random.below(3) as u8, 1, b'a'];
        let head: Bytes = [&start[..], &bytes].concat().into();
        if let Some(Entry::Response(found)) =
            decode(&key, &head, Bytes::new(), &Policies::default())
        {
            assert!(found.length == 0 || matches!(found.body, StoredBody::Parts { .. }));
        }
    }
}

#[test]
fn what_would_break_the_framing_of_a_head_is_nothing() {
    let (key, whole) = (CacheKey::new("a"), Bytes::new());
    let head = |status: &[u8], line: &[u8]| {
        let mut out =
            BytesMut::from(&[RESPONSE, 1, b'a', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..]);
        out.extend_from_slice(&[status, line].concat());
        out
    };
    let reads = |head: BytesMut| decode(&key, &head, whole.clone(), &Policies::default()).is_some();
    let (ok, line) = ([0xc8, 1, 0], [4, 10, b'v', b'a', b'l', b'u', b'e']);
    assert!(reads(head(&ok, &line)) && reads(head(&[0xc8, 1, 2, b'K'], &line)));
    for bad in [b'\r', b'\n', 0, 0x1b, 0x7f] {
        for place in 2..line.len() {
            let mut line = line;
            line[place] = bad;
            // The decoder trims each value. So a bad byte at the beginning or end of the value is
            // dropped.
            assert_eq!(
                reads(head(&ok, &line)),
                place == 2 || place == 6,
                "{bad} in a value at {place}"
            );
        }
        assert!(
            !reads(head(&[0xc8, 1, 3, b'O', bad, b'K'], &line))
                && !reads(head(&[0xc8, 1, 2, bad], &line))
        );
        assert!(!reads(head(&ok, &[0, 3, b'a', bad, b'b', 2, b'c'])), "{bad} in a name");
    }
    for name in [&b""[..], b"a b", b"a:", b"\xc3\xa4", b"\xff"] {
        assert!(
            !reads(head(&ok, &[&[0, name.len() as u8][..], name, &[2, b'c']].concat())),
            "{name:?}"
        );
    }
    assert!(reads(head(&ok, b"\0\x03a-b\x02c")));
}

#[test]
fn numbers_have_one_length_each_and_none_is_too_long() {
    for (number, length) in [(0, 1), (127, 1), (128, 2), (u64::from(u32::MAX), 5), (u64::MAX, 10)] {
        let mut out = BytesMut::new();
        put_number(&mut out, number);
        assert_eq!((out.len(), take_number(&mut &out[..])), (length, Some(number)));
    }
    for long in [[0xff; 10], [0x80; 10]] {
        assert_eq!(take_number(&mut &long[..]), None);
    }
    let beyond = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
    assert_eq!(take_number(&mut &beyond[..]), None);
}
