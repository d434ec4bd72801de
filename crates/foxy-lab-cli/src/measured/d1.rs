//! Measures Table D-1 of *Squid: The Definitive Guide* (paper 000 in docs/figures.md): storage
//! schemes on real file systems in loop devices, with several mount options.

use super::run::{Measured, Run};
use super::{CACHED, Context, Missing, fills, row};
use crate::mounts::{FileSystem, LoopMount};
use foxy_lab::simulation::figures::picture::{Picture, bars};
use foxy_lab::simulation::figures::trial::Mix;
use foxy_lab::simulation::figures::{Figure, Lab};
use foxy_lab::simulation::storage::drive::PIECE_BYTES;
use foxy_lab::simulation::storage::operation::{OperationKind, Operations};
use foxy_lab::simulation::storage::runs::RunError;
use foxy_report::figure::{Condition, FigureRow};
use foxy_schemes::SchemeName;
use std::sync::atomic::Ordering::Relaxed;

const NAME: &str = "000-d1";
const RATE: &str = "URL-get/s";

struct Mount {
    name: &'static str,
    kind: FileSystem,
    options: &'static str,
}

const MOUNTS: &[Mount] = &[
    Mount { name: "ext2", kind: FileSystem::Ext2, options: "strictatime" },
    Mount { name: "ext2 noatime", kind: FileSystem::Ext2, options: "noatime" },
    Mount { name: "ext2 dirsync", kind: FileSystem::Ext2, options: "strictatime,dirsync" },
    Mount { name: "ext3", kind: FileSystem::Ext3, options: "strictatime" },
    Mount { name: "xfs", kind: FileSystem::Xfs, options: "strictatime" },
    Mount { name: "ext4", kind: FileSystem::Ext4, options: "strictatime" },
    Mount { name: "btrfs", kind: FileSystem::Btrfs, options: "strictatime" },
];

const SCHEMES: [SchemeName; 4] =
    [SchemeName::Ufs, SchemeName::Aufs, SchemeName::Diskd, SchemeName::Coss];

const OWN_FILES: f64 = 1.5;

type Cell = (SchemeName, &'static str);

struct Ratio {
    name: &'static str,
    above: Cell,
    below: Cell,
}

const fn ratio(name: &'static str, above: Cell, below: Cell) -> Ratio {
    Ratio { name, above, below }
}

const AUFS_NOATIME: Cell = (AUFS, "ext2 noatime");
const COSS_NOATIME: Cell = (SchemeName::Coss, "ext2 noatime");
const DISKD_NOATIME: Cell = (SchemeName::Diskd, "ext2 noatime");
const UFS_EXT2: Cell = (UFS, "ext2");

const RATIOS: &[Ratio] = &[
    ratio("aufs, ext2: noatime over atime", AUFS_NOATIME, (AUFS, "ext2")),
    ratio("ext2 noatime: coss over aufs", COSS_NOATIME, AUFS_NOATIME),
    ratio("aufs on ext2 noatime over ufs on ext2", AUFS_NOATIME, UFS_EXT2),
    ratio("ext2 noatime: diskd over aufs", DISKD_NOATIME, AUFS_NOATIME),
    ratio("ufs: ext3 over ext2", (UFS, "ext3"), UFS_EXT2),
    ratio("ufs: xfs over ext2", (UFS, "xfs"), UFS_EXT2),
];
const AUFS: SchemeName = SchemeName::Aufs;
const UFS: SchemeName = SchemeName::Ufs;

struct CellOutcome {
    cell: Cell,
    runs: Result<Vec<Measured>, Missing>,
}

impl CellOutcome {
    fn rates(&self) -> Result<Vec<f64>, &Missing> {
        self.runs.as_ref().map(|runs| runs.iter().map(|run| run.rate).collect())
    }
}

/// Measures Table D-1 with the requests of the WebCoSM paper's trace, but without a proxy at its
/// peak load. So only ratios are comparable with the values of the table, and not rates.
pub fn table_d1(context: &Context) -> Figure {
    let extent = context.extent();
    let scale = extent.scale;
    let lab = Lab::new(extent, &|_, _| {});
    let outcomes = measure(context, &lab);
    let filled = fills(&[&lab.stream(lab.extent().seeds[0], Mix::PAPER).operations]);
    let compared = RATIOS.iter().map(|ratio| compare(ratio, &outcomes, scale));
    let mut rows: Vec<FigureRow> = compared.map(|row| row.under(filled.clone())).collect();
    rows.extend(outcomes.iter().map(|outcome| rate_row(outcome, scale)));
    let stream = lab.stream(lab.extent().seeds[0], Mix::PAPER);
    for scheme in SCHEMES {
        rows.extend(count_rows(scheme, &outcomes, &stream.operations, scale));
    }
    let of_scheme = |scheme: &SchemeName| {
        let cells = outcomes.iter().filter(|outcome| outcome.cell.0 == *scheme);
        bars(&scheme.to_string(), cells.map(|cell| cell.rates().unwrap_or_default()))
    };
    let pictures = vec![Picture::bars(
        ["Table D-1: schemes on file systems in loop devices", RATE, ""],
        MOUNTS.iter().map(|mount| mount.name.to_owned()).collect(),
        SCHEMES.iter().map(of_scheme).collect(),
    )];
    Figure { rows, pictures }
}

/// Mounts all file systems at the same time, and measures them in turn. So a disturbance of the
/// machine affects all of them.
fn measure(context: &Context, lab: &Lab) -> Vec<CellOutcome> {
    let seeds = &lab.extent().seeds;
    let disk =
        seeds.iter().map(|&seed| lab.stream(seed, Mix::PAPER).operations.disk).max().unwrap_or(0);
    let mount = |mount: &Mount| {
        if context.watch.stop.load(Relaxed) {
            return Err(Missing::from(RunError::Stopped));
        }
        let size = (512 << 20) + 8 * disk;
        LoopMount::new(&context.folder, mount.kind, mount.options, size)
            .map_err(Missing::impossible)
    };
    let mounted: Vec<Result<LoopMount, Missing>> = MOUNTS.iter().map(mount).collect();
    let mut outcomes: Vec<(&Result<LoopMount, Missing>, CellOutcome)> = Vec::new();
    for (mount, mounted) in MOUNTS.iter().zip(&mounted) {
        let none = || mounted.as_ref().map(|_| Vec::new()).map_err(Missing::clone);
        outcomes.extend(
            SCHEMES
                .map(|scheme| (mounted, CellOutcome { cell: (scheme, mount.name), runs: none() })),
        );
    }
    for &seed in seeds {
        let stream = lab.stream(seed, Mix::PAPER);
        for (mounted, CellOutcome { cell: (scheme, _), runs }) in &mut outcomes {
            if let (Ok(mounted), Ok(done)) = (mounted, &mut *runs) {
                let run =
                    Run::new(mounted.folder(), *scheme, seed, &stream.operations, context.watch)
                        .write();
                match run {
                    Ok(run) => done.push(run),
                    Err(why) => *runs = Err(why),
                }
            }
        }
    }
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn find(outcomes: &[CellOutcome], cell: Cell) -> Result<Vec<f64>, &Missing> {
    let found = outcomes.iter().find(|outcome| outcome.cell == cell);
    found.expect("the table's ratios name cells it has").rates()
}

fn compare(ratio: &Ratio, outcomes: &[CellOutcome], scale: f64) -> FigureRow {
    let Ratio { name, .. } = *ratio;
    match (find(outcomes, ratio.above), find(outcomes, ratio.below)) {
        (Ok(above), Ok(below)) => {
            let values: Vec<f64> =
                above.iter().zip(&below).map(|(above, below)| above / below).collect();
            row(NAME, name, "times", &values, scale)
                .judged()
                .gain()
                .under(Condition::TwoScales { other: None })
                .under(Condition::unmeasured("the disk limits the rate", "not measured"))
                .with_note(CACHED)
        }
        (Err(missing), _) | (_, Err(missing)) => missing.row(NAME, name, "times", scale),
    }
}

fn rate_row(outcome: &CellOutcome, scale: f64) -> FigureRow {
    let name = format!("{} on {}", outcome.cell.0, outcome.cell.1);
    match &outcome.runs {
        Ok(runs) => {
            let rates: Vec<f64> = runs.iter().map(|run| run.rate).collect();
            let lost: u64 = runs.iter().map(|run| run.lost).sum();
            let note =
                if lost > 0 { format!("reads that found nothing: {lost}") } else { String::new() };
            row(NAME, &name, RATE, &rates, scale).with_note(note)
        }
        Err(missing) => missing.row(NAME, &name, RATE, scale),
    }
}

fn count_rows(
    scheme: SchemeName,
    outcomes: &[CellOutcome],
    stream: &Operations,
    scale: f64,
) -> Vec<FigureRow> {
    let of_scheme = || outcomes.iter().filter(|outcome| outcome.cell.0 == scheme);
    let runs: Vec<&Measured> =
        of_scheme().filter_map(|outcome| outcome.runs.as_ref().ok()?.first()).collect();
    let missing =
        of_scheme().find_map(|outcome| outcome.runs.as_ref().err()).filter(|_| runs.is_empty());
    let pieces = |kind: OperationKind| -> f64 {
        let operations = stream.list.iter().filter(|operation| operation.kind == kind);
        operations.map(|operation| operation.size.div_ceil(PIECE_BYTES).max(1)).sum::<u64>() as f64
    };
    let per_file = scheme != SchemeName::Coss;
    let account = |kind| if per_file { pieces(kind) / stream.gets as f64 } else { 0.0 };
    let counted = |name: &str, expected: Option<f64>, count: fn(&Measured) -> u64| {
        let name = format!("{scheme}: {name} per URL-get");
        if let Some(missing) = missing {
            return missing.row(NAME, &name, "1", scale);
        }
        let values: Vec<f64> =
            runs.iter().map(|run| count(run) as f64 / run.gets.max(1) as f64).collect();
        let made = row(NAME, &name, "1", &values, scale);
        let (low, high) = (made.low.unwrap_or_default(), made.high.unwrap_or_default());
        let mut note = if low < high {
            format!("{low:.4} to {high:.4} over {} file systems", values.len())
        } else {
            format!("the same on {} file systems", values.len())
        };
        if let Some(expected) = expected {
            let own = ((high - expected) * stream.gets as f64).round();
            let most = expected + OWN_FILES / stream.gets as f64;
            let band = expected - 1e-9..=most;
            note += &format!("; the technique's account, on our stream: {expected:.4}");
            note += match (band.contains(&low) && band.contains(&high), own > 0.0) {
                (true, true) => ", plus one file of the store itself",
                (true, false) => ", and so it is",
                (false, _) => ": not the same",
            };
        }
        FigureRow { seeds: 1, runs: Vec::new(), ..made.with_note(note) }
    };
    vec![
        counted("creates", Some(account(OperationKind::Write)), |run| run.creates),
        counted("unlinks", Some(account(OperationKind::Delete)), |run| run.counts.unlinks),
        counted("opens", None, |run| run.counts.opens),
        counted("writes", None, |run| run.counts.writes),
        counted("syncs", None, |run| run.syncs),
    ]
}
