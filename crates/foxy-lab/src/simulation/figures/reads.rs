//! What gathering reads gains as more of what reaches the disk is reads (R44): the paper expects it
//! and has no figure.

use super::Figure;
use super::lab::Lab;
use super::picture::{Picture, Series, Style};
use super::trial::{Mix, Trial};
use super::webcosm::{rates, ratios};
use crate::simulation::storage::operation::OperationKind;
use foxy_report::figure::FigureRow;
use foxy_report::statistics::mean;

const NAME: &str = "001-r44";

/// Share of the paper's gets that is run: the share of reads is what counts here.
const SIZE: f64 = 0.3;
/// Repeats in the trace. Most of them come late, so that they are read from the disk and not from
/// memory; the disk keeps nearly all.
const REPEATS: [f64; 6] = [0.05, 0.1, 0.2, 0.35, 0.5, 0.6];
const RECENT: f64 = 0.2;

/// Percent of URL-reads and URL-writes that are reads.
fn reads(lab: &Lab, mix: Mix) -> f64 {
    let shares: Vec<f64> = lab
        .extent()
        .seeds
        .iter()
        .map(|&seed| {
            let stream = lab.stream(seed, mix);
            let count = |kind| {
                stream.operations.list.iter().filter(|operation| operation.kind == kind).count()
            };
            let (reads, writes) = (count(OperationKind::Read), count(OperationKind::Write));
            reads as f64 / (reads + writes).max(1) as f64 * 100.0
        })
        .collect();
    mean(&shares)
}

/// LAZY-READS over PACKETIZER as the share of reads grows.
pub fn gain_over_reads(lab: &Lab) -> Figure {
    let (mut rows, mut points) = (Vec::new(), Vec::new());
    for repeats in REPEATS {
        let mix = Mix { repeats, recent: RECENT, memory: 0.0, disk: 1.0, ..Mix::sized(SIZE) };
        let of = |scheme| rates(&lab.over_seeds(Trial { mix, ..Trial::of(scheme, 1) }));
        let gain = ratios(&of("lazy-reads"), &of("packetizer"));
        let share = reads(lab, mix);
        let name =
            format!("LAZY-READS over PACKETIZER, {:.0} % of fetches repeat", repeats * 100.0);
        points.push((share, mean(&gain)));
        rows.push(
            FigureRow::of(NAME, &name, "times", &gain)
                .with_note(format!("{share:.0} % of URL-reads and URL-writes are reads")),
        );
    }
    let highest = points.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
    let (first, last) = (points[0], points[points.len() - 1]);
    let growth = FigureRow::of(
        NAME,
        "gain at the most reads over gain at the fewest",
        "times",
        &[last.1 / first.1],
    );
    rows.push(growth.shape(last.1 > first.1).with_note(format!(
        "expected to be above 1; the gain is highest at {:.0} % of reads",
        highest.0
    )));
    let pictures = vec![Picture::Plot {
        title: "R44: LAZY-READS over PACKETIZER as reads become more".into(),
        x: "reads, % of reads and writes".into(),
        y: "times as many URL-get/s".into(),
        style: Style::Lines,
        series: vec![Series { name: "LAZY-READS over PACKETIZER".into(), points }],
    }];
    Figure { rows, pictures }
}
