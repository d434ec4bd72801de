//! Tests of stored responses: their form as records, and what they say when read back.

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
    Stored::new(Bytes::from_static(b"http://a/"), head, role.into(), times, 4, body)
}

#[test]
fn a_response_reads_back_as_it_was() {
    for body in [StoredBody::Whole(Bytes::from_static(b"body")), StoredBody::Parts { fill: 9 }] {
        let before = stored(body.clone());
        let record = match &body {
            StoredBody::Whole(bytes) => bytes.clone(),
            StoredBody::Parts { .. } => Bytes::new(),
        };
        let entry = decode(&CacheKey::new("http://a/"), encode_response(&before), record, 0);
        let Some(Entry::Response(after)) = entry else { panic!("{entry:?}") };
        assert_eq!((after.head, after.wire, after.times), (before.head, before.wire, before.times));
        assert_eq!((after.lifetime, after.length, after.body), (60, 4, body));
    }
}

#[test]
fn what_a_targeted_field_governs_is_so_when_it_is_read_back() {
    let before = stored_for(Role::Gateway, StoredBody::Whole(Bytes::from_static(b"body")));
    let entry = decode(&CacheKey::new("http://a/"), encode_response(&before), Bytes::from_static(b"body"), 0);
    let Some(Entry::Response(after)) = entry else { panic!("{entry:?}") };
    assert_eq!((before.lifetime, after.lifetime, after.role()), (90, 90, Role::Gateway));
}

#[test]
fn another_key_a_cut_or_a_wrong_length_is_nothing() {
    let head = encode_response(&stored(StoredBody::Whole(Bytes::from_static(b"body"))));
    let key = CacheKey::new("http://a/");
    assert!(decode(&CacheKey::new("http://b/"), head.clone(), Bytes::from_static(b"body"), 0).is_none());
    assert!(decode(&key, head.clone(), Bytes::from_static(b"bod"), 0).is_none());
    for length in 0..head.len() {
        if let Some(Entry::Response(found)) =
            decode(&key, head.slice(..length), Bytes::from_static(b"body"), 0)
        {
            // A cut between two header lines leaves fewer of them; the store's checksum is what sees that.
            assert!(found.head.headers.len() < 4, "cut at {length}");
        }
    }
}

#[test]
fn a_vary_list_reads_back_and_its_salt_parts_variants() {
    let key = CacheKey::new("http://a/");
    let list = VaryList { vary: Vary::from_names(["accept".into(), "cookie".into()]), salt: 7 };
    let entry = decode(&key, encode_varies(&key, &list), Bytes::new(), 0);
    assert!(matches!(entry, Some(Entry::Varies(_, found)) if found == list));
    let other = VaryList { salt: 8, ..list.clone() };
    assert_ne!(key.variant(&list, b"x").hash, key.variant(&other, b"x").hash);
    assert_eq!(key.list_of(&key.variant(&list, b"x"), list.vary.clone()), Some(list.clone()));
    assert_eq!(key.list_of(&key, list.vary), None);
}
