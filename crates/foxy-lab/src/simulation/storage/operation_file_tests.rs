//! Tests of files with URL operations. A complete file reads back unchanged. The reader refuses a
//! truncated, edited or impossible file and names the line.

use super::*;

fn stream() -> Operations {
    let operation = |kind, url| Operation { kind, url, site: 7, size: 1 << 40 };
    let list = vec![
        operation(OperationKind::Write, 1),
        operation(OperationKind::Read, 1),
        operation(OperationKind::Delete, 1),
        operation(OperationKind::Write, u32::MAX),
    ];
    Operations { list, gets: 5, memory_hits: 2, disk: 1 << 40 }
}

fn written(operations: &Operations) -> String {
    let mut file = Vec::new();
    write(&mut file, operations).expect("writing to memory");
    String::from_utf8(file).expect("plain text")
}

fn check(text: &str, expected: &str) {
    let error = read(text.as_bytes()).expect_err("broken").to_string();
    assert!(error.contains(expected), "{text}: {error}");
}

#[test]
fn a_stream_reads_back() {
    assert_eq!(read(written(&stream()).as_bytes()).expect("just written"), stream());
    let none = Operations { list: Vec::new(), gets: 5, memory_hits: 5, disk: 1 };
    assert_eq!(read(written(&none).as_bytes()).expect("just written"), none);
}

#[test]
fn a_truncated_file_is_refused() {
    let whole = written(&stream());
    for end in 0..whole.len() - 1 {
        assert!(read(&whole.as_bytes()[..end]).is_err(), "{:?}", &whole[..end]);
    }
    let lines: Vec<&str> = whole.lines().collect();
    check(&lines[..4].join("\n"), "ends after 3 of 4 operations");
    let without = [&lines[..4], &["end 3 0000000000000000"]].concat().join("\n");
    check(&without, "line 5: the file ends after 3 operations, but line 1 announces 4");
}

#[test]
fn an_edited_file_is_refused() {
    let whole = written(&stream());
    check(&whole.replacen("2 5 2", "2 9 2", 1), "line 6: the checksum does not");
    check(&whole.replacen("w 1 7", "w 1 8", 1), "line 6: the checksum does not");
    check(&format!("{whole}w 2 2 3\n"), "line 7: nothing may follow");
    for (from, to) in [("operations 2 ", "operations 20 "), ("operations 2 ", "operations 1 ")] {
        check(&whole.replacen(from, to, 1), "of this format, only version 2");
    }
}

#[test]
fn impossible_sums_are_refused() {
    check(&written(&Operations { disk: 0, list: Vec::new(), ..stream() }), "the disk has 0 bytes");
    check(&written(&Operations { memory_hits: 6, ..stream() }), "more memory hits than gets");
    check(&written(&Operations { memory_hits: 3, ..stream() }), "more reads and writes than gets");
}

#[test]
fn a_broken_line_is_named() {
    check("", "line 1");
    check("foxy-operations 2 5 2", "line 1");
    check("foxy-operations 2 5 2 9 1 7", "line 1");
    check("foxy-operations 2 5 2 9 3\nw 1 2 3\nx 1 2 3\n", "line 3");
    check("foxy-operations 2 5 2 9 3\nw 1 2 3 4\n", "line 2");
    check("foxy-operations 2 5 2 9 3\nw 1 2 3\nd 2 2 3\n", "line 3: a read or delete");
    check("foxy-operations 2 5 2 9 3\nw 1 2 3\nr 1 2 4\n", "line 3: a read or delete");
    check("foxy-operations 2 5 2 9 3\nw 1 2 3\nw 1 2 3\n", "line 3");
    check("foxy-operations 2 5 2 9 3\nw 1 2 10\n", "line 2: a read or delete");
}
