//! Tables D-1 and D-6 of *Squid: The Definitive Guide* (paper 000 in docs/figures.md) on the
//! modelled disk. They measure the storage scheme aufs on one to three disks, ufs and diskd on
//! three, and coss on one. They also compare three machines with one disk each and one machine with
//! three disks.

use super::Figure;
use super::evidence::{METADATA_WRITES, Results, disk_is_no_limit, fills};
use super::lab::Lab;
use super::picture::{Picture, line, paper};
use super::throughput::{RATE, rates, ratios};
use super::trial::{Mix, Trial, TrialResult};
use foxy_device::mechanical::{AccessTimes, MetadataMode};
use foxy_report::figure::quotes::in_chart;
use foxy_report::figure::{FigureRow, Place, judge_order};
use std::sync::Arc;

const NAME: &str = "000-d6";
/// The largest number of disks in one machine.
const MOST_DISKS: usize = 3;

const MIX: Mix = Mix { gets: 0.4, disk: 0.4, ..Mix::PAPER };

/// The reason why the model cannot run without a disk.
const NO_TIME: &str = "the model has no network, and counts processor time only for directory \
                       searches, so without a disk nothing takes time; network and processor \
                       limited the 2003 machine";

/// Returns the trial (simulated run) of a storage scheme on several disks of one machine. The disks
/// have the file system ext2 of Linux, which writes names and inodes later. The model assigns
/// directories to disks in turn, as Squid assigns objects.
fn ext2(scheme: &'static str, disks: usize) -> Trial {
    let metadata = MetadataMode::Asynchronous;
    Trial { spindles: disks, metadata, mix: MIX, ..Trial::of(scheme, 1) }
}

fn noatime(scheme: &'static str) -> Trial {
    Trial { access_times: AccessTimes::Unchanged, ..ext2(scheme, MOST_DISKS) }
}

pub fn table_d6(lab: &Lab) -> Figure {
    let (coss, left_out) = coss(lab);
    let aufs: Vec<Vec<Arc<TrialResult>>> =
        (1..=MOST_DISKS).map(|disks| lab.over_seeds(ext2("aufs", disks))).collect();
    let [ufs, diskd_noatime, aufs_noatime] =
        [ext2("ufs", MOST_DISKS), noatime("diskd"), noatime("aufs")]
            .map(|trial| lab.over_seeds(trial));
    let unit = "quoted in transactions/s of PolyMix, ours in gets of the synthetic trace";
    let row = |name: &str, results: &Results| {
        let row = FigureRow::of(NAME, name, RATE, &rates(results)).judged();
        row.under(fills(&[results])).with_note(unit)
    };
    let mut rows = vec![without_disk("aufs, disks: 0", RATE)];
    for (results, disks) in aufs.iter().zip(1..) {
        rows.push(row(&format!("aufs, disks: {disks}"), results));
    }
    let no_limit = "the disk system is not a bottleneck";
    rows.extend([
        row("coss, disks: 1", &coss)
            .under(disk_is_no_limit(no_limit, &coss))
            .with_note(format!("{unit}{left_out}")),
        row("ufs, disks: 3", &ufs),
        row("diskd noatime, disks: 3", &diskd_noatime),
        row("aufs noatime, disks: 3", &aufs_noatime),
    ]);
    judge_order(&mut rows);
    let three = &aufs[MOST_DISKS - 1];
    let ratio = |name: &str, upper: &Results, lower: &Results| {
        FigureRow::of(NAME, name, "times", &ratios(&rates(upper), &rates(lower)))
            .judged()
            .gain()
            .under(fills(&[upper, lower]))
    };
    rows.extend([
        ratio("three disks: aufs over ufs", three, &ufs),
        ratio("three disks: aufs noatime over ufs", &aufs_noatime, &ufs),
        ratio("three disks: aufs noatime over atime", &aufs_noatime, three)
            .under(METADATA_WRITES.fewer("noatime", &aufs_noatime, three)),
        ratio("three disks, noatime: diskd over aufs", &diskd_noatime, &aufs_noatime),
        ratio("two disks over one", &aufs[1], &aufs[0]),
        ratio("three disks over one", three, &aufs[0]),
        without_disk("coss on one disk over no disk", "times"),
        ratio("coss on one disk over aufs on three", &coss, three)
            .under(disk_is_no_limit(no_limit, &coss)),
        three_machines(lab, three),
    ]);
    let disks = || (1..=MOST_DISKS).map(|disks| disks as f64);
    let of_paper = (1..=MOST_DISKS)
        .map(|disks| (disks as f64, in_chart(NAME, &format!("aufs, disks: {disks}"))));
    let pictures = vec![Picture::lines(
        [
            "Table D-6: aufs on one, two and three disks",
            "disks",
            "rate (ours: URL-gets, the paper's: transactions), 1/s",
        ],
        vec![
            line("foxy: aufs", disks().zip(aufs.iter().map(|results| rates(results)))),
            paper("Squid with aufs", of_paper),
        ],
    )];
    Figure { rows, pictures }
}

fn without_disk(name: &str, unit: &str) -> FigureRow {
    FigureRow::impossible(NAME, name, unit, NO_TIME).from_place(Place::Simulated)
}

/// Returns the results of coss on one disk, and a note about refused objects. coss refuses objects
/// above its size limit.
fn coss(lab: &Lab) -> (Vec<Arc<TrialResult>>, String) {
    let results = lab.over_seeds(Trial { mix: MIX, ..Trial::of("coss", 1) });
    if results.iter().all(|result| result.failure().is_none()) {
        let _said_in_its_row = lab.take_shortfalls();
    }
    let left_out = results.iter().find_map(|result| result.outcome.shortfall());
    let left_out = left_out.map_or_else(String::new, |left_out| format!("; {left_out}"));
    (results, left_out)
}

/// Compares three machines, each with one disk, with one machine that has three disks. Each of the
/// three machines serves a third of the requests with a third of the caches. So the three machines
/// together reach three times the rate of one of them.
fn three_machines(lab: &Lab, one_of_three: &Results) -> FigureRow {
    let third = Mix { gets: MIX.gets / 3.0, disk: MIX.disk / 3.0, memory: MIX.memory / 3.0, ..MIX };
    let results = lab.over_seeds(Trial { mix: third, ..ext2("aufs", 1) });
    let each = rates(&results);
    let together: Vec<f64> = each.iter().map(|rate| 3.0 * rate).collect();
    let gain = ratios(&together, &rates(one_of_three));
    FigureRow::of(NAME, "three machines with a disk each over one with three", "times", &gain)
        .judged()
        .shape(gain.iter().all(|&gain| gain > 1.0))
        .under(fills(&[&results, one_of_three]))
        .with_note(
            "\"may be\" better in the seed; each machine has a third of the \
             trace and of the caches; on the model, three disks share only the processor that \
             searches directories",
        )
}
