//! Tests charts as SVG text: structure, escaping, dropped points, and equal text for equal charts.

use foxy_report::Place;
use foxy_report::chart::{
    Axis, Bars, Better, Chart, Dots, Line, Look, Plot, Provenance, Spread, Value, shares_over_times,
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
    let title = "Two".into();
    Chart { title, better: Better::Unstated, provenance, spread: Spread::default(), x, y, plot }
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
    assert!(svg.contains("· simulated · scale 1/10 · after 001 Fig 10"), "{svg}");
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
    assert!(svg.contains("band: 95 % interval of 3 seeds") && svg.contains("(5 to 7)"), "{svg}");
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
    assert_eq!((count(&svg, "class=\"fx-mark"), svg.contains("left out")), (3, false));
    assert!(!svg.contains(">40</text>"), "the ticks are at round numbers: {svg}");
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
    for plot in [Plot::Lines(Vec::new()), Plot::Dots(Vec::new())] {
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
        look: Look::Quoted,
        values: vec![Some(Value::exact(54.9)), Some(Value::between(326.3, 300.0, 350.0))],
    };
    let ours = Bars {
        name: "ours".into(),
        look: Look::Solid,
        values: vec![None, Some(Value::exact(400.0))],
    };
    let svg = chart(Plot::Bars { groups, series: vec![quoted, ours] }).svg();
    assert_eq!((count(&svg, "class=\"fx-value\""), count(&svg, "class=\"fx-whisker\"")), (3, 3));
    assert!(
        svg.contains(">300–350</text>") && svg.contains("<title>coss: ours: 400 %</title>"),
        "{svg}"
    );
}

fn quoted(points: &[(f64, Value)]) -> Line {
    Line { name: "the paper".into(), look: Look::Quoted, points: points.to_vec() }
}

#[test]
fn every_point_of_the_paper_has_a_mark_in_a_colour_of_its_own_and_its_range() {
    let paper = quoted(&[(50.0, Value::exact(120.0)), (90.0, Value::between(8.0, 6.0, 10.0))]);
    let lines = vec![paper, line("BUDDY", &[(50.0, 130.0), (70.0, 133.0)])];
    let svg = chart(Plot::Lines(lines)).svg();
    // Three marks: two points, and the symbol in the legend.
    assert_eq!(count(&svg, "class=\"fx-quote fx-paper\""), 3);
    assert_eq!((count(&svg, "fx-mark fx-c0"), count(&svg, "class=\"fx-whisker\"")), (3, 1));
    assert!(svg.contains(">the paper, 6–10</text>"), "{svg}");
}

#[test]
fn every_run_has_a_dot_and_the_mark_is_at_the_median() {
    let value = Value::of_runs(&[4.0, 9.0, f64::NAN, 5.0]).expect("runs");
    assert_eq!((value.value, value.low, value.high), (5.0, 4.0, 9.0));
    let ours = Line { name: "a".into(), look: Look::Solid, points: vec![(1.0, value.clone())] };
    let mut lines = chart(Plot::Lines(vec![ours]));
    lines.spread = Spread::Runs;
    assert_eq!(count(&lines.svg(), "<circle class=\"fx-run fx-c0\""), 3);
    assert!(
        lines.svg().contains("line: median of 3 seeds, band: lowest to highest, small dots: each")
    );
    let bars = Bars { name: "a".into(), look: Look::Solid, values: vec![Some(value)] };
    let bars = chart(Plot::Bars { groups: vec!["g".into()], series: vec![bars] }).svg();
    assert_eq!(count(&bars, "<circle class=\"fx-run\""), 3);
    assert_eq!(Value::of_runs(&[]), None);
}

/// Returns the numbers of the attribute `name` of all elements that begin with `element`.
fn numbers(svg: &str, element: &str, name: &str) -> Vec<f64> {
    let after = svg.split(element).skip(1).filter_map(|rest| rest.split(name).nth(1));
    after.filter_map(|rest| rest.split('"').nth(1)?.parse().ok()).collect()
}

#[test]
fn an_axis_covers_every_run_every_interval_and_every_point_of_the_paper() {
    let wide = Line {
        name: "a".into(),
        look: Look::Solid,
        points: vec![(1.0, Value::between(40.0, 35.0, 62.0)), (2.0, Value::exact(41.0))],
    };
    let svg = chart(Plot::Lines(vec![wide, quoted(&[(3.0, Value::exact(88.0))])])).svg();
    let texts: Vec<&str> = svg.split("class=\"fx-tick\"").skip(1).collect();
    let labels = texts.iter().filter_map(|text| text.split('>').nth(1)?.split('<').next());
    let most = labels.filter_map(|label| label.parse::<f64>().ok()).fold(0.0, f64::max);
    assert!(most >= 88.0, "{most}");
}

#[test]
fn an_interval_below_zero_ends_at_the_axis_with_an_arrow() {
    let value = Value::between(5.0, -3.0, 13.0);
    let bars = |axis| {
        let series = vec![Bars {
            name: "a".into(),
            look: Look::Solid,
            values: vec![Some(value.clone()), Some(Value::exact(400.0))],
        }];
        let groups = vec!["one".into(), "other".into()];
        let mut chart = chart(Plot::Bars { groups, series });
        chart.x = axis;
        chart.svg()
    };
    for axis in [Axis::linear("rate", "1/s"), Axis::logarithmic("rate", "1/s")] {
        let svg = bars(axis);
        assert_eq!(count(&svg, "class=\"fx-cut\""), 1, "{svg}");
        assert!(svg.contains("(-3 to 13)") && !svg.contains(">-"), "{svg}");
    }
    let lines = vec![Line { name: "a".into(), look: Look::Solid, points: vec![(1.0, value)] }];
    assert_eq!(count(&chart(Plot::Lines(lines)).svg(), "fx-cut fx-c0"), 1);
}

#[test]
fn labels_of_ticks_never_touch() {
    let points: Vec<(f64, f64)> =
        [50.0, 90.0, 110.0, 200.0, 340.0, 500.0, 700.0, 1000.0].map(|rate| (rate, rate)).to_vec();
    let svg = chart(Plot::Lines(vec![line("a", &points)])).svg();
    let places = numbers(&svg, "class=\"fx-tick\"", "x=");
    let below: Vec<f64> = places.into_iter().filter(|place| *place > 60.0).collect();
    assert!(below.len() > 3 && below.windows(2).all(|two| two[1] - two[0] > 24.0), "{below:?}");
}

#[test]
fn an_axis_is_logarithmic_if_its_values_spread_widely() {
    let spacing = |values: &[f64]| Axis::fitting("rate, 1/s", values.iter().copied()).spacing;
    use foxy_report::chart::Spacing;
    assert_eq!(spacing(&[33.0, 14_280.0]), Spacing::Logarithmic);
    assert_eq!(spacing(&[33.0, 48.0]), Spacing::Linear);
    assert_eq!(spacing(&[0.0, 14_280.0]), Spacing::Linear);
    let far = chart(Plot::Lines(vec![line("a", &[(0.0, 33.0), (1.0, 48.0)])])).svg();
    assert!(far.contains("the vertical axis does not start at 0"), "{far}");
}

#[test]
fn a_thousand_dots_are_one_path_and_the_same_place_is_drawn_once() {
    let points = (0..1000).map(|number| (f64::from(number % 10), f64::from(number % 7))).collect();
    let svg = chart(Plot::Dots(vec![Dots { name: "reads".into(), points }])).svg();
    assert_eq!((count(&svg, "fx-dots fx-c0"), count(&svg, "h0")), (1, 70));
}

#[test]
fn a_cloud_of_dots_says_how_far_the_dots_are_apart() {
    let points = vec![(0.0, 10.0), (1.0, 14.0), (2.0, 12.0)];
    let mut chart = chart(Plot::Dots(vec![Dots { name: "reads".into(), points }]));
    chart.y = Axis::linear("place on the disk", "MB");
    let svg = chart.svg();
    assert!(svg.contains("reads: 3 dots. From dot to dot, 3 MB on average."), "{svg}");
    assert!(svg.contains("each dot is an event of a single seed"), "{svg}");
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

#[test]
fn a_chart_says_what_is_better_by_how_much_and_how_sure() {
    let bars = Bars {
        name: "CPU time".into(),
        look: Look::Solid,
        values: vec![Some(Value::between(10.0, 9.0, 11.0)), Some(Value::between(30.0, 27.0, 33.0))],
    };
    let groups = vec!["foxy".into(), "nginx".into()];
    let mut chart = chart(Plot::Bars { groups, series: vec![bars] });
    (chart.better, chart.x.unit) = (Better::Lower, "µs".into());
    let svg = chart.svg();
    assert!(svg.contains(">Best: foxy, 10 µs (9 to 11). Worst: nginx, 30 µs (27 to 33): 3 ×"));
    assert!(svg.contains(">Lower is better · whisker: 95 % interval of 3 seeds ·"), "{svg}");
}

#[test]
fn a_line_has_its_name_and_last_value_at_its_end() {
    let lines = vec![line("a", &[(0.0, 1.0), (1.0, 2.0)]), line("b", &[(0.0, 1.0), (0.5, 3.5)])];
    let svg = chart(Plot::Lines(lines)).svg();
    assert!(svg.contains(">a, 2</text>") && svg.contains(">b, 3.5</text>"), "{svg}");
}

#[test]
fn the_value_of_a_bar_below_zero_does_not_touch_the_names_of_groups() {
    let bars = Bars {
        name: "a".into(),
        look: Look::Solid,
        values: vec![Some(Value::exact(-3.0)), Some(Value::exact(0.066))],
    };
    let groups = vec!["second less first, median".into(), "other".into()];
    let svg = chart(Plot::Bars { groups, series: vec![bars] }).svg();
    let name = numbers(&svg, "class=\"fx-name\"", "x=")[0];
    let value = numbers(&svg, "class=\"fx-value\"", "x=")[0];
    assert!(value - name > 14.0, "the name ends at {name}, the value -3 at {value}");
}

#[test]
fn a_long_value_at_the_end_of_a_bar_stays_inside_the_picture() {
    let value = Some(Value::between(8_000_000.0, 7_000_000.0, 10_000_000.0));
    let bars = Bars { name: "the paper".into(), look: Look::Quoted, values: vec![value] };
    let svg = chart(Plot::Bars { groups: vec!["a".into()], series: vec![bars] }).svg();
    let start = numbers(&svg, "class=\"fx-value\"", "x=")[0];
    assert!(svg.contains(">7,000,000–10,000,000</text>") && start < 760.0 - 130.0, "{start}");
}
