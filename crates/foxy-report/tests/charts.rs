//! Tests charts as SVG text: structure, escaping, dropped points, and equal text for equal charts.

use foxy_report::Place;
use foxy_report::chart::{
    Axis, Bars, Bin, Bins, Chart, Dots, Line, Look, Plot, Provenance, Value, shares_over_times,
};

fn chart(plot: Plot) -> Chart {
    let provenance = Provenance {
        source: "001 Fig 10".into(),
        place: Place::Simulated,
        scale: 0.1,
        quick: false,
        seeds: 3,
    };
    let (x, y) = (Axis::linear("utilisation", "%"), Axis::linear("throughput", "1/s"));
    Chart { title: "Two".into(), provenance, x, y, plot }
}

fn line(name: &str, points: &[(f64, f64)]) -> Line {
    let points = points.iter().map(|&(x, y)| (x, Value::exact(y))).collect();
    Line { name: name.into(), look: Look::Solid, points }
}

fn count(svg: &str, part: &str) -> usize {
    svg.matches(part).count()
}

#[test]
fn a_line_has_one_mark_a_point_each_saying_its_value() {
    let svg =
        chart(Plot::Lines(vec![line("BUDDY", &[(50.0, 130.0), (70.0, 133.0), (90.0, 131.5)])]))
            .svg();
    assert_eq!(count(&svg, "class=\"fx-mark fx-c0\""), 3);
    assert!(svg.contains("<title>BUDDY: 70 %, 133 1/s</title>"), "{svg}");
    assert!(svg.contains(">simulated · scale 1/10 · 3 seeds · after 001 Fig 10</text>"), "{svg}");
    assert_eq!(count(&svg, "fx-band\""), 0);
}

#[test]
fn a_small_chart_is_exactly_this() {
    let svg = chart(Plot::Lines(vec![line("a", &[(0.0, 0.0), (10.0, 10.0)])])).svg();
    let body = svg.split_once("</style>\n").expect("a style sheet").1;
    let expected = include_str!("small-chart.svg.txt");
    assert_eq!(body, expected);
}

#[test]
fn a_legend_names_every_series_and_only_when_there_are_several() {
    let one = line("BUDDY", &[(0.0, 1.0)]);
    let names = |plot| count(&chart(plot).svg(), "class=\"fx-name\"");
    assert_eq!(names(Plot::Lines(vec![one.clone()])), 0);
    assert_eq!(names(Plot::Lines(vec![one.clone(), one])), 2);
}

#[test]
fn intervals_make_a_band_and_the_subtitle_says_so() {
    let mut wide = line("STREAM", &[(0.0, 5.0), (1.0, 6.0)]);
    wide.points[0].1.high = 7.0;
    let svg = chart(Plot::Lines(vec![wide])).svg();
    assert_eq!(count(&svg, "class=\"fx-band fx-c0\""), 1);
    assert!(svg.contains("· 95 % intervals</text>") && svg.contains("(95 %: 5 to 7)"), "{svg}");
}

#[test]
fn a_distribution_runs_from_no_share_to_all_and_a_time_of_zero_has_its_place() {
    let points = shares_over_times([(0.0, 0.0), (0.5, 40.0), (1.0, 900.0)]);
    assert_eq!(points[0], (1.0, Value::exact(0.0)));
    let lines = vec![Line { name: "foxy".into(), look: Look::Solid, points }];
    let provenance = Provenance {
        source: String::new(),
        place: Place::Measured,
        scale: 1.0,
        quick: false,
        seeds: 1,
    };
    let svg = Chart::distribution("How long".into(), "latency", provenance, lines).svg();
    assert_eq!(count(&svg, "class=\"fx-mark fx-c0\""), 3);
    assert!(svg.contains("<title>foxy: 40 µs, 0.5</title>") && !svg.contains("left out"), "{svg}");
}

#[test]
fn what_is_not_finite_is_left_out_and_counted() {
    let points = [(0.0, 1.0), (1.0, f64::NAN), (f64::INFINITY, 2.0), (3.0, 4.0)];
    let svg = chart(Plot::Lines(vec![line("a", &points)])).svg();
    assert!(
        svg.contains("2 points left out") && !svg.contains("NaN") && !svg.contains("inf"),
        "{svg}"
    );
    let mut logarithmic =
        chart(Plot::Dots(vec![Dots { name: "a".into(), points: vec![(1.0, 0.0), (1.0, 3.0)] }]));
    logarithmic.y = Axis::logarithmic("latency", "ms");
    assert!(logarithmic.svg().contains("1 point left out"));
}

#[test]
fn an_interval_that_is_not_finite_is_no_interval() {
    let mut odd = line("a", &[(0.0, 5.0), (1.0, 6.0)]);
    odd.points[0].1.low = f64::NEG_INFINITY;
    assert!(!chart(Plot::Lines(vec![odd])).svg().contains("inf"));
}

#[test]
fn without_data_the_chart_says_so() {
    let bars = Plot::Bars { groups: vec!["a".into()], series: Vec::new() };
    for plot in [Plot::Lines(Vec::new()), Plot::Dots(Vec::new()), Plot::Histogram(Vec::new())] {
        assert!(chart(plot).svg().contains(">no data</text>"));
    }
    assert!(chart(bars).svg().contains("0</text>"));
}

#[test]
fn names_and_titles_are_escaped() {
    let mut chart =
        chart(Plot::Lines(vec![line("<a>", &[(0.0, 1.0)]), line("\"b\"", &[(0.0, 2.0)])]));
    chart.title = "</svg><script>&".into();
    chart.x = Axis::linear("<x>", "&");
    let svg = chart.svg();
    assert!(!svg.contains("<script") && !svg.contains("<a>") && !svg.contains("<x>"), "{svg}");
    assert!(svg.contains("&lt;/svg&gt;&lt;script&gt;&amp;"), "{svg}");
}

#[test]
fn bars_stand_in_their_groups_with_values_at_their_ends_and_gaps_where_none_is() {
    let groups = vec!["ufs".into(), "coss".into()];
    let quoted = Bars {
        name: "quoted".into(),
        values: vec![
            Some(Value::exact(54.9)),
            Some(Value { value: 326.3, low: 300.0, high: 350.0 }),
        ],
    };
    let ours = Bars { name: "ours".into(), values: vec![None, Some(Value::exact(400.0))] };
    let svg = chart(Plot::Bars { groups, series: vec![quoted, ours] }).svg();
    assert_eq!((count(&svg, "class=\"fx-value\""), count(&svg, "class=\"fx-whisker\"")), (3, 1));
    assert!(
        svg.contains(">326.3</text>") && svg.contains("<title>coss: ours: 400 %</title>"),
        "{svg}"
    );
}

#[test]
fn bins_of_several_series_share_their_place() {
    let bins = |name: &str, count| Bins {
        name: name.into(),
        bins: vec![Bin { from: 0.0, to: 1.0, count }],
    };
    let svg = chart(Plot::Histogram(vec![bins("with", 1885.0), bins("without", 611.0)])).svg();
    assert!(svg.contains("<title>with: 0 to 1 %: 1,885 1/s</title>"), "{svg}");
    assert!(svg.contains("<title>without: 0 to 1 %: 611 1/s</title>"), "{svg}");
}

#[test]
fn a_thousand_dots_are_one_path_and_the_same_place_is_drawn_once() {
    let points = (0..1000).map(|number| (f64::from(number % 10), f64::from(number % 7))).collect();
    let svg = chart(Plot::Dots(vec![Dots { name: "reads".into(), points }])).svg();
    assert_eq!((count(&svg, "fx-dots fx-c0"), count(&svg, "h0")), (1, 70));
}

#[test]
fn the_same_chart_is_the_same_text_and_needs_nothing_from_outside() {
    let lines = || chart(Plot::Lines(vec![line("a", &[(3.0, 1.0), (1.0, 2.0)])])).svg();
    assert_eq!(lines(), lines());
    let svg = lines();
    for outside in ["<script", "href", "url(", "@import"] {
        assert!(!svg.contains(outside), "{outside}");
    }
    assert_eq!(count(&svg, "http"), 1, "only the name space");
}
