//! What happens on the disk: Figures 2, 8, 9, 13, 14 and 15 of seed 001 (R16, R30–R33).

use super::Figure;
use super::lab::Lab;
use super::picture::{Picture, Series, StoreMap, Style};
use super::trial::{Trial, TrialResult};
use crate::simulation::storage::pace::{TimeSource, Virtual};
use foxy_base::Instant;
use foxy_device::mechanical::SystemProfile;
use foxy_device::{
    Device, DiskProfile, FileId, IoBuffer, IoError, IoId, IoOp, Mechanical, StorePath,
};
use foxy_report::figure::{FigureRow, judge_order, within};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

/// Files that hbench-OS creates and then deletes in reverse.
const FILES: u32 = 64;
/// Blocks within which Fig 15 counts two reads as near.
const NEAR: usize = 10;

/// Milliseconds to create and to delete, by seed.
type Times = (Vec<f64>, Vec<f64>);

/// Figure 2: creating and deleting files, by size, on the model with an empty cache.
pub fn figure_2(lab: &Lab) -> Figure {
    let sizes: Vec<usize> = (0..=10).map(|kilobytes| kilobytes << 10).collect();
    let measure = |size: usize| -> Times {
        lab.extent().seeds.iter().map(|&seed| create_and_delete(size, seed)).unzip()
    };
    let times: Vec<_> = sizes.iter().map(|&size| measure(size)).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let line = |name: &str, of: &dyn Fn(&Times) -> f64| Series {
        name: name.into(),
        points: sizes.iter().map(|&size| (size >> 10) as f64).zip(times.iter().map(of)).collect(),
    };
    let series = vec![line("create", &|time| mean(&time.0)), line("delete", &|time| mean(&time.1))];
    let (empty, full) = (&times[0], &times[10]);
    let row = |name: &str, values: &[f64]| FigureRow::of("001-fig2", name, "ms", values);
    let growth: Vec<f64> = full.0.iter().zip(&empty.0).map(|(full, empty)| full / empty).collect();
    let mut rows = vec![
        row("create, empty file", &empty.0).against(20.0, within(20.0)),
        row("delete, empty file", &empty.1).against(10.0, within(10.0)),
    ];
    judge_order(&mut rows);
    let grows = growth.iter().all(|&growth| growth > 1.0);
    rows.push(
        FigureRow::of("001-fig2", "create, 10 KB over empty", "times", &growth)
            .shape(grows)
            .with_note("both grow with the size in the paper; no number is quoted"),
    );
    let pictures = vec![Picture::Plot {
        title: "Fig 2: file management overhead of a file system".into(),
        x: "file size, KB".into(),
        y: "time per operation, ms".into(),
        style: Style::Lines,
        series,
    }];
    Figure { rows, pictures }
}

/// Milliseconds to create, and to delete, a file of that size on the model.
fn create_and_delete(size: usize, seed: u64) -> (f64, f64) {
    let system = SystemProfile { write_behind: 0, ..SystemProfile::solaris() };
    let mut device = Mechanical::new(DiskProfile { system, ..DiskProfile::st15150w() }, 1, seed);
    file_times(size, 4, &mut device, &mut Virtual::default())
        .expect("a model has no reason to fail")
}

/// Milliseconds to create, and to delete, a file of that size: 64 files in a new directory, deleted
/// in reverse, in so many directories one after the other. In one directory again and again the
/// next files would have inodes further on, which the model meets at another angle.
///
/// # Errors
/// The first operation that failed.
pub fn file_times<D: Device, P: TimeSource<D>>(
    size: usize,
    times: u32,
    device: &mut D,
    pace: &mut P,
) -> Result<(f64, f64), IoError> {
    let mut carry_out = |op: IoOp| -> Result<Instant, IoError> {
        device.submit(IoId(1), op, pace.now());
        let mut done = Vec::new();
        device.reap(pace.now(), &mut done);
        while done.is_empty() {
            pace.wait(device, None);
            device.reap(pace.now(), &mut done);
        }
        for one in done {
            one.result?;
        }
        Ok(pace.now())
    };
    let mut rounds = [Duration::ZERO; 2];
    for round in 0..times {
        let path = |name: &dyn Display| StorePath::new(format!("{round}/{name}"));
        carry_out(IoOp::MakeDir { path: StorePath::new(round.to_string()) })?;
        carry_out(IoOp::Create { file: FileId(9), path: path(&"first"), size: 0 })?;
        let begun = carry_out(IoOp::Close { file: FileId(9) })?;
        let mut last = begun;
        for file in 0..FILES {
            let id = FileId(10);
            carry_out(IoOp::Create { file: id, path: path(&file), size: 0 })?;
            if size > 0 {
                carry_out(IoOp::Write { file: id, offset: 0, buffer: IoBuffer::zeroed(size) })?;
            }
            last = carry_out(IoOp::Close { file: id })?;
        }
        rounds[0] += last.since(begun);
        for file in (0..FILES).rev() {
            let end = carry_out(IoOp::Remove { path: path(&file) })?;
            rounds[1] += end.since(last);
            last = end;
        }
    }
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(times * FILES);
    Ok((milliseconds(rounds[0]), milliseconds(rounds[1])))
}

fn followed(lab: &Lab, trial: Trial) -> Vec<Arc<TrialResult>> {
    let trials: Vec<_> = lab.extent().seeds.iter().map(|&seed| Trial { seed, ..trial }).collect();
    lab.results(&trials, true)
}

fn head_plot(lab: &Lab, scheme: &'static str, title: &str, figure: &str) -> Figure {
    let results = followed(lab, Trial { utilization: 0.70, ..Trial::of(scheme, 1) });
    let movement = |result: &Arc<TrialResult>| {
        let disk = result.disk;
        disk.seeks as f64 / (disk.device_reads + disk.device_writes).max(1) as f64 * 100.0
    };
    let values: Vec<f64> = results.iter().map(movement).collect();
    let rows = vec![
        FigureRow::of(figure, "requests that move the arm", "%", &values)
            .with_note("the paper shows a picture and gives no number"),
    ];
    let heads = results.first().map(|result| result.observed.heads.clone()).unwrap_or_default();
    let start = heads.first().map_or(0.0, |head| head.0);
    let points = |reads: bool| {
        let kept = heads.iter().filter(|head| head.2 == reads);
        kept.map(|&(seconds, place, _)| (seconds - start, place)).collect()
    };
    let series = vec![
        Series { name: "writes".into(), points: points(false) },
        Series { name: "reads".into(), points: points(true) },
    ];
    let pictures = vec![Picture::Plot {
        title: title.into(),
        x: "time, s".into(),
        y: "place on the disk, MB".into(),
        style: Style::Dots,
        series,
    }];
    Figure { rows, pictures }
}

/// Figure 8: the head's way under BUDDY.
pub fn figure_8(lab: &Lab) -> Figure {
    head_plot(lab, "buddy", "Fig 8: disk head positions under BUDDY", "001-fig8")
}

/// Figure 9: the head's way under STREAM.
pub fn figure_9(lab: &Lab) -> Figure {
    head_plot(lab, "stream", "Fig 9: disk head positions under STREAM", "001-fig9")
}

/// STREAM-PACKETIZER without and with locality buffers, at the utilization of the paper's
/// comparison.
fn without_and_with(lab: &Lab) -> [Vec<Arc<TrialResult>>; 2] {
    ["packetizer", "lazy-reads-loc"]
        .map(|scheme| followed(lab, Trial { utilization: 0.76, ..Trial::of(scheme, 1) }))
}

/// Figure 13: where free space lies at the end.
pub fn figure_13(lab: &Lab) -> Figure {
    let both = without_and_with(lab);
    let chunks = |results: &[Arc<TrialResult>]| -> Vec<f64> {
        results.iter().map(|result| result.observed.free_runs.len() as f64).collect()
    };
    let rows = vec![
        FigureRow::of(
            "001-fig13",
            "free chunks at the end, without locality buffers",
            "chunks",
            &chunks(&both[0]),
        ),
        FigureRow::of(
            "001-fig13",
            "free chunks at the end, 128 locality buffers",
            "chunks",
            &chunks(&both[1]),
        ),
    ];
    let names = ["without locality buffers", "128 locality buffers"];
    let stores = both.iter().zip(names).filter_map(|(results, name)| {
        let runs = results.first()?.observed.free_runs.clone();
        let free: u32 = runs.iter().map(|run| run.1).sum();
        let slots = (f64::from(free) / (1.0 - 0.76)) as u32;
        let end = runs.last().map_or(0, |run| run.0 + run.1);
        Some(StoreMap { name: name.to_owned(), slots: slots.max(end), free_runs: runs })
    });
    let title = "Fig 13: free space (light) at the end".into();
    Figure { rows, pictures: vec![Picture::Map { title, stores: stores.collect() }] }
}

/// Figure 14: the mean free chunk in the course of the run.
pub fn figure_14(lab: &Lab) -> Figure {
    let both = without_and_with(lab);
    let late = |results: &[Arc<TrialResult>]| -> Vec<f64> {
        let half = |result: &Arc<TrialResult>| {
            let chunks = &result.observed.chunks;
            let late = &chunks[chunks.len() / 2..];
            late.iter().map(|chunk| chunk.1).sum::<f64>() / late.len().max(1) as f64
        };
        results.iter().map(half).collect()
    };
    let (without, with) = (late(&both[0]), late(&both[1]));
    let gain: Vec<f64> = with.iter().zip(&without).map(|(with, without)| with / without).collect();
    let larger = gain.iter().all(|&gain| gain > 1.0);
    let rows = vec![
        FigureRow::of("001-fig14", "mean free chunk, 128 locality buffers", "KB", &with)
            .against(145.0, 110.0..=180.0)
            .shape(larger),
        FigureRow::of("001-fig14", "mean free chunk, without", "KB", &without),
        FigureRow::of("001-fig14", "with over without", "times", &gain)
            .shape(larger)
            .with_note("larger with buffers in the paper; no number is quoted"),
    ];
    let series = both.iter().zip(["without locality buffers", "128 locality buffers"]).map(
        |(results, name)| {
            let points =
                results.first().map(|result| result.observed.chunks.clone()).unwrap_or_default();
            Series { name: name.into(), points }
        },
    );
    let pictures = vec![Picture::Plot {
        title: "Fig 14: mean size of free chunks".into(),
        x: "URL-gets, thousands".into(),
        y: "mean free chunk, KB".into(),
        style: Style::Lines,
        series: series.collect(),
    }];
    Figure { rows, pictures }
}

/// Figure 15: how far each read lies from the one before.
pub fn figure_15(lab: &Lab) -> Figure {
    let both = without_and_with(lab);
    let share = |results: &[Arc<TrialResult>], blocks: usize| -> Vec<f64> {
        let near = |result: &Arc<TrialResult>| {
            let distances = &result.observed.distances;
            let all: u64 = distances.iter().sum();
            distances[..blocks].iter().sum::<u64>() as f64 / all.max(1) as f64 * 100.0
        };
        results.iter().map(near).collect()
    };
    // The counts that are quoted, of Table 1's 42,085 reads.
    let next = [611.0 / 420.85, 1885.0 / 420.85];
    let near = [6.0, 17.0];
    let mut rows = Vec::new();
    for (what, blocks, quoted) in
        [("within ten blocks", NEAR, near), ("of the next block", 1, next)]
    {
        let mut pair: Vec<FigureRow> = both
            .iter()
            .zip(["without", "128 locality buffers"])
            .zip(quoted)
            .map(|((results, with), quoted)| {
                let name = format!("reads {what}, {with}");
                FigureRow::of("001-fig15", &name, "%", &share(results, blocks))
                    .against(quoted, within(quoted))
            })
            .collect();
        judge_order(&mut pair);
        rows.append(&mut pair);
    }
    let series = both.iter().zip(["without locality buffers", "128 locality buffers"]).map(
        |(results, name)| {
            let distances =
                results.first().map(|result| &result.observed.distances[..30]).unwrap_or_default();
            let points =
                (0..).map(f64::from).zip(distances.iter().map(|&count| count as f64)).collect();
            Series { name: name.into(), points }
        },
    );
    let pictures = vec![Picture::Plot {
        title: "Fig 15: distances of reads from the one before".into(),
        x: "distance from the end of the read before, blocks of 8 KiB".into(),
        y: "reads".into(),
        style: Style::Histogram,
        series: series.collect(),
    }];
    Figure { rows, pictures }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_takes_as_long_in_figure_2_as_in_the_calibration() {
        let calibration = foxy_device::calibrate(&DiskProfile::st15150w(), 1);
        let value =
            |name| calibration.lines.iter().find(|line| line.name == name).expect("a line").value;
        let (create, delete) = create_and_delete(0, 1);
        assert!((create - value("create an empty file")).abs() < 0.5, "{create} ms");
        assert!((delete - value("remove an empty file")).abs() < 0.5, "{delete} ms");
    }
}
