//! Tests the header list: order, case, duplicates, comma lists, and refused lines.

use crate::support::lines;
use bytes::BytesMut;
use foxy_http::{
    HeadText, Headers, InvalidHeader, Method, OwnName, ResponseDecoder, ResponseEvent,
    ResponseHead, encode,
};

fn list(text: &str) -> Headers {
    text.lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name, value.as_bytes()))
        .collect()
}

fn shown(members: impl Iterator<Item = impl AsRef<[u8]>>) -> Vec<String> {
    members.map(|member| String::from_utf8_lossy(member.as_ref()).into_owned()).collect()
}

#[test]
fn names_are_compared_without_case_and_kept_with_it() {
    let headers = list("Content-TYPE: a\nX: 1\ncontent-type: b");
    assert_eq!(headers.get("content-type"), Some(&b"a"[..]));
    assert_eq!(shown(headers.get_all("CONTENT-type")), ["a", "b"]);
    assert!(headers.contains("x") && !headers.contains("y"));
    assert_eq!(lines(&headers), "Content-TYPE: a\nX: 1\ncontent-type: b\n");
}

#[test]
fn set_takes_the_place_of_the_first_line_and_drops_the_others() {
    let mut headers = list("A: 1\nB: 2\na: 3\nC: 4");
    headers.set("A", "9");
    assert_eq!(lines(&headers), "A: 9\nB: 2\nC: 4\n");
    headers.set("D", b"5");
    assert_eq!(lines(&headers), "A: 9\nB: 2\nC: 4\nD: 5\n");
}

#[test]
fn remove_says_how_many_lines_there_were() {
    let mut headers = list("A: 1\nB: 2\na: 3");
    assert_eq!((headers.remove("A"), headers.remove("A"), headers.len()), (2, 0, 1));
}

#[test]
fn retain_keeps_order() {
    let mut headers = list("A: 1\nB: 2\nC: 3");
    headers.retain(|name, value| name != "B" && value != b"9");
    assert_eq!(lines(&headers), "A: 1\nC: 3\n");
}

#[test]
fn tokens_join_lines_skip_empty_members_and_keep_quoted_commas() {
    let headers = list("L: a, b,,  ,c\nl: \"x, \\\" y\" , d");
    assert_eq!(shown(headers.tokens("L")), ["a", "b", "c", "\"x, \\\" y\"", "d"]);
    assert!(headers.has_token("l", "B") && !headers.has_token("l", "x"));
}

#[test]
fn an_appended_value_cannot_end_its_line() {
    let mut headers = Headers::new();
    headers.append("X", "a\r\nSet-Cookie: evil\0");
    headers.append("Y", " \r\n ");
    assert_eq!(lines(&headers), "X: a  Set-Cookie: evil\nY: \n");
}

#[test]
fn foreign_lines_that_cannot_be_written_are_refused() {
    let mut headers = Headers::new();
    assert_eq!(headers.try_append("X Y", b"a"), Err(InvalidHeader::Name));
    assert_eq!(headers.try_append("", b"a"), Err(InvalidHeader::Name));
    assert_eq!(headers.try_append("X", b"a\nb"), Err(InvalidHeader::Value));
    assert_eq!(headers.try_append("X", b"\x7f"), Err(InvalidHeader::Value));
    assert_eq!(headers.try_append("X", b"a\tb\xff"), Ok(()));
    assert_eq!(lines(&headers), "X: a\\tb\\xff\n");
}

#[test]
#[should_panic(expected = "is not a token")]
fn a_name_of_our_own_that_is_no_token_is_a_defect() {
    Headers::new().append("X:", "a");
}

#[test]
fn a_compacted_list_is_equal() {
    let mut headers = list("A: 1\nB: 2");
    headers.remove("A");
    headers.set("b", "3");
    assert_eq!(headers.compact(), headers);
    assert_eq!(headers.wire_length(), "b: 3\r\n".len());
}

#[test]
fn lines_of_several_names_are_removed_at_once_in_any_case() {
    let mut headers = list("Age: 1\nB: 2\nX-Age: 3\nAGE: 4\nCONTENT-length: 5\nA: 6\nb: 7");
    assert_eq!(headers.remove_all(["age", "content-length", "b", "absent"]), 5);
    assert_eq!(lines(&headers), "X-Age: 3\nA: 6\n");
    assert_eq!(headers.remove_all(["age"]), 0);
}

#[test]
fn a_line_is_written_in_one_way_however_it_came() {
    let text =
        "HTTP/1.1 200 OK\r\nA: 1\r\nB:2\r\nC:  3\r\nD: 4 \r\nE:\r\nF: 5\r\n 6\r\nG: 7\r\n\r\n";
    let mut decoder = ResponseDecoder::default();
    decoder.expect(&Method::Get);
    let Ok(Some(ResponseEvent::Head(mut head, _))) = decoder.next(&mut BytesMut::from(text)) else {
        panic!("not a head: {text:?}")
    };
    head.headers.append("H", "8\r9");
    let mut out = Vec::new();
    encode::header_lines(&head.headers, &mut out);
    let expected = "A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: \r\nF: 5   6\r\nG: 7\r\nH: 8 9\r\n";
    assert_eq!(String::from_utf8_lossy(&out), expected);
    assert_eq!(head.headers.wire_length(), expected.len());
}

#[test]
fn a_written_head_is_the_same_head_and_lies_in_its_text() {
    let mut head = ResponseHead { reason: "Fine".into(), ..ResponseHead::new(203) };
    head.headers = list("A: 1\nB: 2\nC: \nD:  4 ");
    head.headers.remove("a");
    head.headers.append("E", " 5\r6 ");
    let (text, mut written) = head.written();
    assert_eq!(text, "HTTP/1.1 203 Fine\r\nB: 2\r\nC: \r\nD: 4\r\nE: 5 6\r\n");
    assert_eq!(written, head);
    assert_eq!(written.written().0, text);
    written.headers.set("C", "3");
    assert_eq!(lines(&written.headers), "B: 2\nC: 3\nD: 4\nE: 5 6\n");
    assert_eq!(lines(&head.headers), "B: 2\nC: \nD: 4\nE: 5 6\n");
}

#[test]
fn a_text_of_a_head_holds_the_lines_that_were_added_and_no_other() {
    const NAME: OwnName = OwnName::new("X-Own");
    let text = |reason: &[u8], name: &[u8], value: &[u8]| {
        let mut text = HeadText::new(200, reason, 0);
        text.own_line(NAME, true, b"\t1 ");
        text.line(name, value)?;
        text.own_line(NAME, false, value);
        text.finish()
    };
    let (written, headers) = text(b"", b"b", b"\xe4\t2").expect("lines");
    assert_eq!(written, &b"HTTP/1.1 200 \r\nx-own: 1\r\nb: \xe4\t2\r\nX-Own: \xe4\t2\r\n"[..]);
    assert_eq!(headers.get_all("x-OWN").collect::<Vec<_>>(), [&b"1"[..], b"\xe4\t2"]);
    for bad in [&b"1\r\nc: 2"[..], b"1\n2", b"1\x002", b"1\x7f2"] {
        assert_eq!(text(b"", b"b", bad), Err(InvalidHeader::Value), "{bad:?}");
        assert_eq!(text(b"", bad, b"1"), Err(InvalidHeader::Name), "{bad:?}");
    }
    assert_eq!(text(b"a\0b", b"b", b"1"), Err(InvalidHeader::Value));
    assert!(text(&[b'a'; 1000], b"b", &[b'b'; 1000]).is_ok());
}

#[test]
fn a_changed_clone_leaves_the_original_alone() {
    let headers = list("A: 1");
    let mut clone = headers.clone();
    clone.set("A", "2");
    assert_eq!((headers.get_str("a"), clone.get_str("a")), (Some("1"), Some("2")));
}
