//! Pictures of the reference architectures: latency, hit ratios and errors over the number of
//! clients. They resemble Figs 2 to 11 of the benchmark's paper (paper 003 in docs/figures.md).

use super::{LATENCY, MeasuredWpb};
use foxy_lab::load::wpb::{Part, PointReport, scale};
use foxy_lab::simulation::figures::picture::{Picture, changed, line, paper};
use foxy_report::chart::{Line, Look};
use foxy_report::figure::quotes::in_chart;

/// The paper's descriptions of the curves of a reference architecture, one description for each
/// figure. `None` if the paper has no such figure.
struct PaperFigures {
    name: &'static str,
    latency: Option<&'static str>,
    hits: Option<&'static str>,
    errors: Option<&'static str>,
}

const FIGURES: [PaperFigures; 5] = [
    PaperFigures {
        name: "CERN",
        latency: Some("Fig 2: phase 2 above no cache beyond 32 clients"),
        hits: Some("Fig 3: falls slowly"),
        errors: Some("Fig 4: beyond 40 clients, none in phase 2"),
    },
    PaperFigures {
        name: "Apache",
        latency: Some("Fig 5: phase 2 below no cache up to 72 clients"),
        hits: Some("Fig 6: flat"),
        errors: None,
    },
    PaperFigures {
        name: "Proxy N",
        latency: Some("Fig 7: rises steadily, even without a cache"),
        hits: Some("Fig 8: falls very slowly"),
        errors: Some("Fig 9: beyond 48 clients"),
    },
    PaperFigures {
        name: "Proxy N with 64",
        latency: None,
        hits: None,
        errors: Some("Fig 9: beyond 88 clients"),
    },
    PaperFigures {
        name: "Squid",
        latency: Some("Fig 10: as Apache and CERN; best without a cache"),
        hits: Some("Fig 11: hit ratio flat, byte hit ratio unstable"),
        errors: None,
    },
];

/// The number of clients at which the benchmark's paper gives a latency for Apache (Fig 5).
const OVERLOADED: f64 = 88.0;

pub(super) fn pictures(measured: &MeasuredWpb) -> Vec<Picture> {
    let of_paper = FIGURES.iter().find(|figures| figures.name == measured.name);
    let words = |of: fn(&PaperFigures) -> Option<&'static str>| of_paper.and_then(of);
    let title = |what: &str, words: Option<&str>| {
        let words = words.map_or_else(String::new, |words| format!(" (the paper, {words})"));
        format!("Reference architecture {}: {what}{words}", measured.name)
    };
    let plot = |what: &str, words: Option<&str>, y: &str, lines: Vec<Line>| {
        Picture::lines([&title(what, words), "clients", y], lines)
    };
    let shorter = 1.0 / scale(LATENCY);
    let mut pictures = vec![plot(
        "mean latency, lower is better",
        words(|figures| figures.latency),
        &format!("mean latency, ms; servers wait 3 s / {shorter:.0}"),
        latencies(measured),
    )];
    if let Some(words) = words(|figures| figures.hits) {
        let percent = |ratio: Option<f64>| ratio.map(|ratio| ratio * 100.0);
        let lines = vec![
            measured.line("hit ratio", |point| percent(point.hit_ratio())),
            measured.line("byte hit ratio", |point| percent(point.byte_hit_ratio())),
            dashed(measured.line("highest possible", |point| percent(point.offered()))),
        ];
        pictures.push(plot("hit ratio", Some(words), "share of both phases, %", lines));
    }
    if let Some(words) = words(|figures| figures.errors) {
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
        let lines = Part::ALL.map(|part| {
            measured.line(part.name(), move |point| Some(point.part(part).failed() as f64))
        });
        pictures.push(plot("errors", Some(words), "failed requests", lines.into()));
    }
    pictures
}

fn dashed(line: Line) -> Line {
    Line { look: Look::Dashed, ..line }
}

fn latencies(measured: &MeasuredWpb) -> Vec<Line> {
    let of = |part: Part| move |point: &PointReport| point.part(part).mean();
    let mut lines = vec![
        dashed(measured.line("no cache", of(Part::Control))),
        measured.line("phase 1", of(Part::First)),
        measured.line("phase 2", of(Part::Second)),
    ];
    if measured.name == "Apache" {
        // The quoted ratio is the latency in the benchmark's paper, divided by the time that the
        // servers of the paper wait.
        let times = in_chart("003-fig5", "phase 1 over no-cache, 88 clients");
        let wait = LATENCY.as_secs_f64() * 1000.0;
        lines.push(paper("phase 1", [(OVERLOADED, changed(times, |times| times * wait))]));
    }
    lines
}

impl MeasuredWpb {
    /// Makes a line over the number of clients, with the values of all seeds.
    fn line(&self, name: &str, of: impl Fn(&PointReport) -> Option<f64>) -> Line {
        let clients = self.runs.first().map_or(&[][..], Vec::as_slice);
        let at = |number: usize, clients: u32| {
            let runs = self.runs.iter().filter_map(|points| points.get(number));
            (f64::from(clients), runs.filter_map(&of).collect())
        };
        let points = clients.iter().enumerate().map(|(number, point)| at(number, point.clients));
        line(name, points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_lab::simulation::figures::picture::Picture::Plot;

    #[test]
    fn every_picture_says_reference_architecture_and_what_the_paper_shows() {
        for figures in &FIGURES {
            let measured = MeasuredWpb { name: figures.name, runs: Vec::new() };
            for picture in pictures(&measured) {
                let Plot { title, .. } = picture else { panic!("a chart") };
                assert!(title.starts_with("Reference architecture "), "{title}");
            }
        }
    }
}
