//! Tables D-1 and D-6 of seed 000 on the modelled disk. They measure aufs on one to three disks
//! (R85), ufs and diskd on three (R80), and coss on one disk (R87). They also compare three
//! machines with one disk each and one machine with three disks (R88).

use super::Figure;
use super::lab::Lab;
use super::picture::{Picture, Series, Style};
use super::throughput::{RATE, rates, ratios};
use super::trial::{Mix, Trial};
use foxy_device::mechanical::{AccessTimes, MetadataMode};
use foxy_report::figure::{FigureRow, Place, judge_order, within};
use foxy_report::statistics::mean;

const NAME: &str = "000-d6";
/// The quoted rates in table D-1: without a disk, with one to three disks under aufs, and with one
/// disk under coss.
const NO_DISK: f64 = 332.1;
const AUFS: [f64; 3] = [66.0, 85.3, 109.6];
const COSS: f64 = 326.3;

const MIX: Mix = Mix { gets: 0.4, disk: 0.4, ..Mix::PAPER };

/// The reason why the model cannot run without a disk.
const NO_TIME: &str = "the model has no network, and counts processor time only for directory \
                       searches, so without a disk nothing takes time; network and processor \
                       limited the 2003 machine";

/// The quoted rates in table D-1, with three disks.
const UFS: f64 = 54.9;
const DISKD_NOATIME: f64 = 149.4;
const AUFS_NOATIME: f64 = 168.5;

/// Returns the trial of a scheme on several disks of one machine with Linux' ext2, which writes
/// names and inodes later. The model assigns directories to disks in turn, as Squid assigns
/// objects.
fn ext2(scheme: &'static str, disks: usize) -> Trial {
    let metadata = MetadataMode::Asynchronous;
    Trial { spindles: disks, metadata, mix: MIX, ..Trial::of(scheme, 1) }
}

fn noatime(scheme: &'static str) -> Trial {
    Trial { access_times: AccessTimes::Unchanged, ..ext2(scheme, AUFS.len()) }
}

pub fn table_d6(lab: &Lab) -> Figure {
    let (coss, left_out) = coss(lab);
    let of: Vec<Vec<f64>> =
        (1..=AUFS.len()).map(|disks| rates(&lab.over_seeds(ext2("aufs", disks)))).collect();
    let row = |name: &str, unit: &str, values: &[f64]| FigureRow::of(NAME, name, unit, values);
    let unit = "quoted in transactions/s of PolyMix, ours in gets of the synthetic trace";
    let mut rows = vec![without_disk("aufs, disks: 0", RATE, NO_DISK)];
    for ((values, quoted), disks) in of.iter().zip(AUFS).zip(1..) {
        let row = row(&format!("aufs, disks: {disks}"), RATE, values);
        rows.push(row.against(quoted, within(quoted)).with_note(unit));
    }
    rows.push(
        row("coss, disks: 1", RATE, &coss)
            .against(COSS, within(COSS))
            .with_note(format!("quoted in table D-1; {unit}{left_out}")),
    );
    let [ufs, diskd_noatime, aufs_noatime] =
        [ext2("ufs", AUFS.len()), noatime("diskd"), noatime("aufs")]
            .map(|trial| rates(&lab.over_seeds(trial)));
    for (name, values, quoted) in [
        ("ufs, disks: 3", &ufs, UFS),
        ("diskd noatime, disks: 3", &diskd_noatime, DISKD_NOATIME),
        ("aufs noatime, disks: 3", &aufs_noatime, AUFS_NOATIME),
    ] {
        let row = row(name, RATE, values).against(quoted, within(quoted));
        rows.push(row.with_note(format!("quoted in table D-1; {unit}")));
    }
    judge_order(&mut rows);
    rows.extend(workers([&ufs, &of[2], &diskd_noatime, &aufs_noatime]));
    let why = "the model has no processor to wait for; the 2003 machine had";
    for (name, disks, quoted, band) in [
        ("two disks over one", 2, 1.29, 1.15..=1.45),
        ("three disks over one", 3, 1.66, 1.45..=1.9),
    ] {
        let values = ratios(&of[disks - 1], &of[0]);
        rows.push(row(name, "times", &values).against(quoted, band).gain().with_note(why));
    }
    rows.push(without_disk("coss on one disk over no disk", "times", 0.98));
    rows.push(
        row("coss on one disk over aufs on three", "times", &ratios(&coss, &of[2]))
            .against(COSS / AUFS[2], within(COSS / AUFS[2]))
            .gain()
            .with_note(
                "from tables D-1 and D-6; by the seed's account, the disk does not limit coss",
            ),
    );
    rows.push(three_machines(lab, &of[2]));
    let points = (1..).map(f64::from).zip(of.iter().map(|values| mean(values)));
    let pictures = vec![Picture::plot(
        Style::Lines,
        ["D-6: aufs on one, two and three disks", "disks", RATE],
        vec![Series::new("aufs", points.collect())],
    )];
    Figure { rows, pictures }
}

/// Returns the gains from threads and helper processes, with three disks.
fn workers([ufs, aufs, diskd_noatime, aufs_noatime]: [&[f64]; 4]) -> Vec<FigureRow> {
    let why = "ufs waits for each operation, diskd has a process for each disk, aufs 32 threads";
    let row = |name: &str, upper: &[f64], lower: &[f64], quoted: f64| {
        FigureRow::of(NAME, name, "times", &ratios(upper, lower))
            .against(quoted, within(quoted))
            .gain()
            .with_note(why)
    };
    vec![
        row("three disks: aufs over ufs", aufs, ufs, 110.0 / UFS),
        row("three disks: aufs noatime over ufs", aufs_noatime, ufs, AUFS_NOATIME / UFS),
        row("three disks: aufs noatime over atime", aufs_noatime, aufs, AUFS_NOATIME / 110.0),
        row(
            "three disks, noatime: diskd over aufs",
            diskd_noatime,
            aufs_noatime,
            DISKD_NOATIME / AUFS_NOATIME,
        ),
    ]
}

fn without_disk(name: &str, unit: &str, quoted: f64) -> FigureRow {
    FigureRow::impossible(NAME, name, unit, Some(quoted), NO_TIME).from_place(Place::Simulated)
}

/// Returns the rates of coss on one disk, and a note about skipped work. Coss refuses objects above
/// its limit.
fn coss(lab: &Lab) -> (Vec<f64>, String) {
    let results = lab.over_seeds(Trial { mix: MIX, ..Trial::of("coss", 1) });
    if results.iter().all(|result| result.failure().is_none()) {
        let _said_in_its_row = lab.take_shortfalls();
    }
    let left_out = results.iter().find_map(|result| result.outcome.shortfall());
    (rates(&results), left_out.map_or_else(String::new, |left_out| format!("; {left_out}")))
}

/// Compares three machines with one machine that has three disks. Each of the three machines has
/// one disk, and a third of the trace and of the caches. Together, the three machines serve three
/// times the rate of one of them.
fn three_machines(lab: &Lab, one_of_three: &[f64]) -> FigureRow {
    let third = Mix { gets: MIX.gets / 3.0, disk: MIX.disk / 3.0, memory: MIX.memory / 3.0, ..MIX };
    let each = rates(&lab.over_seeds(Trial { mix: third, ..ext2("aufs", 1) }));
    let together: Vec<f64> = each.iter().map(|rate| 3.0 * rate).collect();
    let gain = ratios(&together, one_of_three);
    FigureRow::of(NAME, "three machines with a disk each over one with three", "times", &gain)
        .shape(gain.iter().all(|&gain| gain > 1.0))
        .with_note(
            "\"may be\" better in the seed, which has no number; each machine has a third of the \
             trace and of the caches; on the model, three disks share only the processor that \
             searches directories",
        )
}
