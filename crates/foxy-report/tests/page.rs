//! Tests the HTML page of a run: it shows all records, loads nothing from other addresses, and
//! escapes text.

use foxy_report::{
    FigureRow, Machine, Measure, Page, Place, Record, RequestClass, Setup, Table, Timeline,
};

fn setup() -> Setup {
    let machine =
        Machine { cpu: "A <CPU>".into(), cores: 2, memory: 8 << 30, kernel: "Linux 6.1".into() };
    Setup {
        program: "foxy".into(),
        version: "0.1.0".into(),
        command: "foxy figure 001-table2 --quick".into(),
        machine,
        seed: 7,
        scale: 0.1,
        quick: false,
        started: 1_763_713_360,
    }
}

fn records() -> Vec<Record> {
    let row = FigureRow::of("001-table2", "BUDDY", "URL-get/s", &[131.0, 135.0]);
    let timeline =
        |subject| Timeline::new("hit_ratio", subject, "share", &[(0.0, 0.1), (1.0, 0.5)]);
    vec![
        Record::Setup(setup()),
        Record::FigureRow(row.against(133.0, 120.0..=146.0)),
        Record::Measure(Measure::once("requests_per_second", "foxy", 12_345.0, "1/s")),
        Record::RequestClass(RequestClass::new(
            "hit",
            "foxy",
            4096,
            &foxy_report::Latencies::default(),
        )),
        Record::Timeline(timeline("foxy")),
        Record::Timeline(timeline("squid")),
        Record::Histogram {
            name: "latency".into(),
            subject: "foxy".into(),
            quantiles: vec![(0.0, 0), (0.5, 40), (1.0, 900)],
            workload: None,
        },
        Record::End { held: false },
    ]
}

#[test]
fn a_page_of_records_shows_every_kind() {
    let html = Page::of_records("A run", &records(), Place::Simulated).html();
    for part in [
        "<h1>A run</h1>",
        "<dd>A &lt;CPU&gt;, 2 cores, 8 GiB of memory, Linux 6.1</dd>",
        "<dd>Fri, 21 Nov 2025 08:22:40 GMT</dd>",
        "<dd>1/10</dd>",
        "<td>reproduced</td>",
        "<td class=\"number\">12,345</td><td>–</td><td>–</td>",
        "<h2>Classes of requests</h2>",
        ">hit ratio over time</text>",
        ">Distribution of latency</text>",
        "A bar that was given was missed.",
    ] {
        assert!(html.contains(part), "{part} is missing");
    }
    assert_eq!(html.matches("<figure>").count(), 3, "the rows, and one chart for each name");
    assert!(!html.contains("left out"), "a latency of zero has its place");
    let distribution = html.split("Distribution of latency</text>").nth(1).expect("a chart");
    let line = distribution.split("fx-line fx-c0\" d=\"").nth(1).expect("a line");
    let line = line.split('"').next().expect("a path");
    assert_eq!((line.matches('L').count(), line.contains('H')), (2, false), "no steps: {line}");
}

#[test]
fn a_page_of_a_run_says_first_what_its_figures_are_worth() {
    let warnings = ["the generator was the limit".into(), "the cache was small".into()];
    let html =
        Page::of_run("A run", &setup(), "latencies in ms", Some("stopped at 8"), &warnings).html();
    let words = ["<dd>7</dd>", "<p>latencies in ms</p>", "<p>Incomplete: stopped at 8.</p>"];
    let more =
        ["<p>Warning: the generator was the limit.</p>", "<p>Warning: the cache was small.</p>"];
    let places: Vec<_> =
        words.iter().chain(&more).map(|part| html.find(part).expect(part)).collect();
    assert!(places.is_sorted(), "{html}");
    assert!(!Page::of_run("A run", &setup(), "", None, &[]).html().contains("Incomplete"));
}

#[test]
fn a_page_of_a_quick_run_never_says_that_its_scale_is_full() {
    let timeline =
        || Record::Timeline(Timeline::new("hit_ratio", "foxy", "share", &[(0.0, 0.1), (1.0, 0.5)]));
    for (scale, fact, below) in [
        (1.0, "<dd>quick</dd>", "measured · quick run"),
        (0.1, "<dd>1/10, quick</dd>", "scale 1/10, quick"),
    ] {
        let setup = Setup { scale, quick: true, ..setup() };
        let html =
            Page::of_records("A run", &[Record::Setup(setup), timeline()], Place::Measured).html();
        assert!(html.contains(fact) && html.contains(below) && !html.contains("full"), "{html}");
    }
}

#[test]
fn bytes_on_a_page_have_a_unit() {
    let html = Page::of_records("A run", &records(), Place::Measured).html();
    assert!(html.contains(">4 KiB</td>") && !html.contains("4,096"), "{html}");
}

#[test]
fn a_page_needs_nothing_from_outside_and_never_varies() {
    let html = || Page::of_records("A run", &records(), Place::Measured).html();
    assert_eq!(html(), html());
    for outside in ["<script", "href=", "src=", "url(", "@import", "<link"] {
        assert!(!html().contains(outside), "{outside}");
    }
}

#[test]
fn words_in_titles_tables_and_paragraphs_are_escaped() {
    let mut page = Page::new("<script>1</script>");
    let mut table = Table::new(&["<b>", "n"]);
    table.row(&["</table>".into(), "3".into()]);
    page.heading("<i>");
    page.paragraph("a & b");
    page.table("<caption>", &table);
    let html = page.html();
    for raw in ["<script>", "<b>", "<i>"] {
        assert!(!html.contains(raw), "{raw}");
    }
    assert!(html.contains("<td>&lt;/table&gt;</td><td class=\"number\">3</td>"), "{html}");
    assert!(html.contains("<p>a &amp; b</p>"), "{html}");
}

#[test]
fn a_start_beyond_every_calendar_is_still_a_date() {
    let mut page = Page::new("late");
    page.setup(&Setup { started: u64::MAX, ..setup() });
    assert!(page.html().contains("31 Dec 9999"));
}

#[test]
fn a_page_of_nothing_is_a_page() {
    let html = Page::of_records("empty", &[], Place::Derived).html();
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"));
}
