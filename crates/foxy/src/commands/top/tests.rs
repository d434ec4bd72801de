//! Tests the screen with the data of a foxy that does not run.

use super::watch::Look;
use super::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};

fn outcome(name: &str, is_hit: bool, count: u64) -> Value {
    json!({ "name": name, "is_hit": is_hit, "is_cacheable": true, "count": count,
        "buckets": [[0.002, count], [null, count]] })
}

/// Returns the data of a foxy that has answered `requests` requests by `seconds` after its start.
fn look(seconds: u64, requests: u64) -> Look {
    let request = |elapsed: u64, path: &str| {
        let url = format!("http://a.test/{path}");
        json!({ "elapsed_us": elapsed, "status": 200, "outcome": "miss", "url": url })
    };
    let measures = json!({ "live_bytes": 3 << 20, "capacity_bytes": 64 << 20, "records": 12,
        "read_bytes": 0, "written_bytes": requests << 10 });
    let live = json!({
        "version": "1.2.3", "started_ms": 5000, "now_ms": 5000 + seconds * 1000,
        "counters": { "requests": requests, "client_sent_bytes": requests << 10,
            "origin_received_bytes": requests << 12, "client_cacheable_bytes": requests << 9,
            "origin_cacheable_bytes": requests << 8 },
        "outcomes": [outcome("memory-hit", true, requests * 3 / 4),
            outcome("miss", false, requests / 4), outcome("tunnel", false, 0)],
        "memory": { "bytes": 1 << 20, "limit": 8 << 20 }, "resident_bytes": 30 << 20,
        "connections": { "open": 7, "limit": 100 }, "cpu_seconds": seconds as f64 / 2.0,
        "troubles": [],
        "stores": [{ "folder": "/var/cache/a-long-folder/foxy", "status": "serving",
            "out_of_use": false, "measures": measures }],
        "traffic": { "hosts": [{ "name": "a.test", "share": 0.75, "requests": 8, "hits": 4 }],
            "requests": [request(900, "fast"), request(2_500_000, "slow")] },
    });
    let cell = |state: u64, live: u64| {
        json!([0, state, 0, 1, 0, 0, 0, live, [0, 0, 0, 0], "", 1 << 20, 0, 0])
    };
    let map = json!({ "states": ["free", "sealed", "leaving", "sealing", "copying", "open"],
        "cells": [cell(1, 1 << 20), cell(1, 1 << 19), cell(2, 0), cell(5, 0), cell(0, 0)] });
    Look { live, map: Some((0, map)) }
}

fn looks(all: &[Look]) -> Looks {
    let mut looks = Looks::new("127.0.0.1:3129".into());
    all.iter().for_each(|look| looks.add(look.clone()));
    looks
}

fn line<'a>(frame: &'a str, part: &str) -> &'a str {
    let found = frame.lines().find(|line| line.contains(part));
    found.unwrap_or_else(|| panic!("no {part} in\n{frame}"))
}

#[test]
fn the_frame_has_each_figure_within_80_columns_and_24_lines() {
    let frame = frame(&looks(&[look(10, 100), look(12, 500)]));
    assert_eq!(frame.split('\n').count(), 24, "{frame}");
    assert!(frame.lines().all(|line| line.chars().count() <= 80), "{frame}");
    for (part, expected) in [
        ("foxy 1.2.3", "foxy 1.2.3 at 127.0.0.1:3129, running for 12 s: healthy"),
        ("requests/s,", "200 requests/s, 75.0 % hits, 50.0 % traffic saved, 200 KiB/s to clients"),
        ("CPUs", "memory 30 MiB (cached responses 1 MiB), 7 connections, 0.5 CPUs in use"),
        ("peak", "peak 200/s      █"),
        ("outcome", "outcome         per s    total  median     p99"),
        ("memory-hit", "memory-hit        150      375  1.0 ms  2.0 ms"),
        ("a.test  ", "75.0 %  50.0 %"),
        ("serving", "/var/cac…er/foxy"),
        ("map (", "map (height: live data, ·: free, ◆: write position, ×: being evicted)"),
        ("◆·", "█▄×◆·"),
    ] {
        let line = line(&frame, part);
        assert!(line.contains(expected), "{expected:?} is not in {line:?} of\n{frame}");
    }
    let place = |part: &str| frame.find(part).expect("there");
    assert!(place("2.5 s") < place("900 µs"), "{frame}");
    assert!(!frame.contains("tunnel"), "an outcome without requests has no line");
}

#[test]
fn the_terminal_shows_the_same_frame() {
    let looks = looks(&[look(10, 100), look(12, 500)]);
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a terminal");
    let screen = Screen { looks: &looks, has_colours: true };
    terminal.draw(|frame| frame.render_widget(&screen, frame.area())).expect("drawn");
    let shown = terminal.backend().to_string();
    let shown = shown.lines().map(|line| line.trim_matches('"').trim_end());
    let expected = frame(&looks);
    assert!(shown.eq(expected.split('\n')), "{expected}");
    let has_colour = |looks: &Looks, has_colours| {
        let mut buffer = Buffer::empty(ONCE);
        Screen { looks, has_colours }.render(ONCE, &mut buffer);
        buffer.content().iter().any(|cell| cell.fg != ratatui::style::Color::Reset)
    };
    assert!(has_colour(&looks, true) && !has_colour(&looks, false));
}

#[test]
fn a_screen_of_any_size_is_drawn() {
    let looks = looks(&[look(10, 100), look(12, 500)]);
    for (width, height) in [(1, 1), (20, 5), (60, 21), (200, 60)] {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        Screen { looks: &looks, has_colours: true }.render(area, &mut buffer);
        assert_eq!(buffer[(0, 0)].symbol(), "f", "{width}×{height}");
    }
}

#[test]
fn a_lost_server_and_its_troubles_are_named() {
    let mut looks = looks(&[]);
    assert_eq!(frame(&looks).trim_end(), "foxy top, 127.0.0.1:3129: connecting");
    let mut troubled = look(10, 100);
    troubled.live["troubles"] = json!(["store /s: it fails", "another"]);
    looks.add(troubled);
    assert!(line(&frame(&looks), "running").ends_with(": store /s: it fails (+1)"));
    looks.lost = Some("no foxy answers".into());
    assert!(line(&frame(&looks), "running").ends_with(": reconnecting"));
    let mut restarted = look(1, 5);
    restarted.live["started_ms"] = 9_000_000.into();
    looks.add(restarted);
    assert!(looks.lost.is_none() && looks.growth("requests").is_none());
}

#[test]
fn q_escape_and_control_c_quit() {
    let key = |code, modifiers| quits(KeyEvent::new(code, modifiers));
    assert!(key(KeyCode::Char('q'), KeyModifiers::NONE));
    assert!(key(KeyCode::Esc, KeyModifiers::NONE));
    assert!(key(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert!(!key(KeyCode::Char('c'), KeyModifiers::NONE));
}
