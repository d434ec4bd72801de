//! Measures Figure 2 of the WebCoSM paper (paper 001 in docs/figures.md) on real file systems in
//! loop devices, with and without synchronous directory updates.

use super::{Context, row};
use crate::mounts::{FileSystem, LoopMount};
use foxy_cli::temporary::Temporary;
use foxy_device::{Blocking, DirectIo, Root};
use foxy_lab::simulation::figures::disk::{FileTimes, file_times};
use foxy_lab::simulation::figures::picture::{Picture, line};
use foxy_lab::simulation::figures::{self, Figure};
use foxy_lab::simulation::storage::drive::RealTime;
use foxy_report::chart::{Line, Plot};
use foxy_report::figure::FigureRow;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

const NAME: &str = "001-fig2-disk";
/// At this scale or above (1 is the WebCoSM paper's scale), the run measures files of 0, 1, 2 … 10
/// KB four times. At a smaller scale, the run measures files of 0, 5 and 10 KB once.
const FULL: f64 = 0.5;
const SIZE: u64 = 512 << 20;

const KINDS: [FileSystem; 5] =
    [FileSystem::Ext2, FileSystem::Ext3, FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs];
const OPTIONS: [(&str, &str); 2] = [("", "noatime"), (" dirsync", "noatime,dirsync")];

type Times = Vec<FileTimes>;

pub fn figure_2(context: &Context) -> Figure {
    let model = figures::find("001-fig2").expect("a figure of the table").make(context.lab);
    let mut figure = Figure { rows: Vec::new(), pictures: model.pictures };
    for kind in KINDS {
        for (suffix, options) in OPTIONS {
            let name = format!("{}{suffix}", kind.name());
            let times = measure(context, kind, options);
            figure.rows.extend(rows(&name, &times));
            if let (Ok(times), Some(Picture::Plot { title, plot: Plot::Lines(all), .. })) =
                (&times, figure.pictures.first_mut())
            {
                *title =
                    "Fig 2: time to create and to delete a file, on the model and on file systems of today"
                        .into();
                all.extend(lines(&name, times));
            }
        }
    }
    figure
}

fn lines(name: &str, times: &Times) -> [Line; 2] {
    let over_size = |what: &str, of: fn(&FileTimes) -> f64| {
        let points = times.iter().map(|point| (point.kilobytes as f64, vec![of(point)]));
        line(&format!("{name}: {what}"), points)
    };
    [over_size("create", |point| point.create), over_size("delete", |point| point.delete)]
}

fn rows(name: &str, times: &Result<Times, String>) -> Vec<FigureRow> {
    let row = |what: &str, of: fn(&Times) -> f64| {
        let title = format!("{what}, {name}");
        match times {
            Ok(times) => row(NAME, &title, "ms", &[of(times)], 1.0).judged(),
            Err(why) => FigureRow::impossible(NAME, &title, "ms", why),
        }
    };
    vec![
        row("create, empty file", |times| times[0].create),
        row("delete, empty file", |times| times[0].delete),
    ]
}

fn measure(context: &Context, kind: FileSystem, options: &str) -> Result<Times, String> {
    if context.watch.stop.load(Relaxed) {
        return Err("stopped".into());
    }
    let mount = LoopMount::new(&context.folder, kind, options, SIZE)
        .map_err(|reason| reason.to_string())?;
    let step = if context.lab.extent().scale < FULL { 5 } else { 1 };
    let times_of = |kilobytes| times_in(context, mount.folder(), kilobytes);
    (0..=10).step_by(step).map(times_of).collect()
}

fn times_in(context: &Context, mounted: &Path, kilobytes: usize) -> Result<FileTimes, String> {
    if context.watch.stop.load(Relaxed) {
        return Err("stopped".into());
    }
    let folder = Temporary::new(mounted.join((kilobytes << 10).to_string()));
    let root = Root::open(folder.path()).map_err(|error| error.to_string())?;
    let rounds = if context.lab.extent().scale < FULL { 1 } else { 4 };
    let mut device = Blocking::new(&root, DirectIo::Off);
    file_times(kilobytes, rounds, &mut device, &mut RealTime).map_err(|error| error.to_string())
}
