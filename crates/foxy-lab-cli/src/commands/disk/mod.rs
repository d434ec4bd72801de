//! `foxy disk serve`: provides a modelled mechanical disk as a file. A loop device can use the
//! file, and any file system can use the loop device. So real proxies can run on the slow disk.

mod arm;
mod file_system;

use crate::arguments::{option, path};
use crate::experiment::{self, Conclusion, Experiment, Flag, flags};
use arm::Arm;
use clap::{Arg, ArgMatches, Command, value_parser};
use file_system::DiskFiles;
use foxy_base::{ByteSize, Random, clock};
use foxy_cli::failure::Failure;
use foxy_cli::signals::interrupted;
use foxy_cli::terminal;
use foxy_device::{DiskProfile, MechanicalCounts};
use foxy_report::{Measure, Record, Table};
use fuser::{Config, MountOption, Session};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const SERVE: &str = "\
Serve disks that are as slow as a mechanical disk. Each disk is a file in MOUNTPOINT, a FUSE \
mount. Reads and writes of the file take the time of the modelled disk: its queue, seeks, rotation and \
transfer. A loop device and a file system on top then meet this disk, and so does every program.

With --time 10x the disk runs ten times as fast as the model. Compare only programs that ran at \
the same factor. The content is in a file without a name in the system's temporary folder, or in \
--backing; its own disk must be faster than the model.

  foxy disk serve /mnt/model --time 10x
  losetup --find --show --direct-io=on /mnt/model/disk1
  mkfs.ext4 -q /dev/loop0 && mount /dev/loop0 /mnt/slow

Only root may mount. The command runs until a signal stops it, and then prints its counts. Unmount \
the file systems and detach the loop devices (losetup --detach) first.";

/// The largest number of disks. Each disk takes a thread, and a sparse file as large as the model's
/// disk.
const MOST_DISKS: u64 = 16;

/// Interval at which the command checks whether a signal has arrived.
const LOOK: Duration = Duration::from_millis(100);

pub fn command() -> Command {
    Command::new("disk")
        .about("Offer any program a disk that is as slow as a mechanical disk")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve_command())
}

fn serve_command() -> Command {
    Command::new("serve")
        .about("Mount files (with FUSE) that are as slow as mechanical disks")
        .long_about(SERVE)
        .args([
            Arg::new("mountpoint")
                .value_name("MOUNTPOINT")
                .help("Empty folder in which each disk appears as a file")
                .required(true)
                .value_parser(value_parser!(PathBuf)),
            option("profile", "NAME", "Modelled disk: st15150w is the Seagate of the Squid paper")
                .value_parser(["st15150w"])
                .default_value("st15150w"),
            option("time", "FACTORx", "How many times as fast as the model the disk runs")
                .value_parser(factor)
                .default_value("1x"),
            option(
                "size",
                "SIZE",
                "Size of each disk; a smaller disk has fewer cylinders, but needs the same time \
                 for a full move of the arm [default: as the profile]",
            )
            .value_parser(value_parser!(ByteSize)),
            option("disks", "N", "Number of disks, each with its own arm")
                .value_parser(value_parser!(u64).range(1..=MOST_DISKS))
                .default_value("1"),
            path("backing", "FOLDER", "Folder for the content [default: the temporary folder]"),
        ])
        .args(flags([Flag::Seed, Flag::Json]))
}

/// Parses the factor by which the disk is faster than its model, such as `10x` or `10`.
fn factor(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('x').unwrap_or(text).parse().ok();
    let number = number.filter(|factor: &f64| (0.001..=10_000.0).contains(factor));
    number.ok_or_else(|| format!("{text:?} is not a factor from 0.001x to 10000x, such as 10x"))
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let (_, matches) = matches.subcommand().expect("a subcommand is required");
    serve(matches)
}

fn serve(matches: &ArgMatches) -> Result<(), Failure> {
    let experiment = Experiment::new("disk serve", matches);
    let mountpoint: &PathBuf = matches.get_one("mountpoint").expect("required");
    let factor: f64 = *matches.get_one("time").expect("has a default");
    let disks: u64 = *matches.get_one("disks").expect("has a default");
    let backing = matches.get_one::<PathBuf>("backing");
    let backing = backing.cloned().unwrap_or_else(std::env::temp_dir);
    let mut profile = DiskProfile::st15150w();
    if let Some(&ByteSize(size)) = matches.get_one("size") {
        let most = ByteSize(profile.capacity());
        profile = profile.with_capacity(size).ok_or_else(|| {
            Failure::Unusable(format!("--size: give a size from 64 MB to {most}"))
        })?;
    }
    let mut random = Random::new(experiment::seed(matches));
    let stop = interrupted()?;
    let arms = (0..disks)
        .map(|_| Arm::start(&profile, random.next_u64(), factor, &backing))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| {
            let folder = backing.display();
            Failure::Unusable(format!("--backing {folder}: {error}; name a folder with free space"))
        })?;
    let files = DiskFiles::new(profile.capacity(), arms.iter().map(Arm::sender).collect());
    let session = mount(files, mountpoint)?;
    terminal::print(&announcement(mountpoint, factor, profile.capacity(), disks));
    let began = clock::monotonic();
    while !stop.load(Relaxed) && !session.guard.is_finished() {
        std::thread::sleep(LOOK);
    }
    let unmounted = session.umount_and_join();
    let model_seconds = clock::monotonic().since(began).as_secs_f64() * factor;
    let counts: Vec<_> = arms.into_iter().map(Arm::stop).collect();
    experiment.finish(Conclusion {
        text: table(&counts, model_seconds),
        records: counts.iter().enumerate().flat_map(|disk| records(disk, model_seconds)).collect(),
        warnings: unmounted.err().map(|error| busy(mountpoint, &error)).into_iter().collect(),
        ..Conclusion::default()
    })
}

fn mount(files: DiskFiles, mountpoint: &Path) -> Result<fuser::BackgroundSession, Failure> {
    let mut config = Config::default();
    config.mount_options =
        vec![MountOption::FSName("foxy-disk".into()), MountOption::Subtype("foxy".into())];
    let session = Session::new(files, mountpoint, &config).and_then(Session::spawn);
    session.map_err(|error| {
        let place = mountpoint.display();
        Failure::Unusable(format!(
            "{place}: cannot mount: {error}; run as root, with /dev/fuse and an existing folder"
        ))
    })
}

fn announcement(mountpoint: &Path, factor: f64, capacity: u64, disks: u64) -> String {
    let place = mountpoint.display();
    let last = if disks > 1 { format!(" to {place}/disk{disks}") } else { String::new() };
    format!(
        "{place}/disk1{last}: {} each, {factor} times as fast as an ST15150W. Next:\n  \
         losetup --find --show --direct-io=on {place}/disk1",
        ByteSize(capacity)
    )
}

fn busy(mountpoint: &Path, error: &std::io::Error) -> String {
    let place = mountpoint.display();
    format!("{place}: {error}; detach its loop devices, then unmount it with umount {place}")
}

fn table(disks: &[MechanicalCounts], model_seconds: f64) -> String {
    let heads = [
        "disk",
        "reads",
        "writes",
        "read",
        "written",
        "seeks",
        "from buffer",
        "busy, s",
        "busy, %",
    ];
    let mut table = Table::new(&heads);
    for (index, counts) in disks.iter().enumerate() {
        table.row(&[
            format!("disk{}", index + 1),
            counts.device_reads.to_string(),
            counts.device_writes.to_string(),
            ByteSize(counts.bytes_read).to_string(),
            ByteSize(counts.bytes_written).to_string(),
            counts.seeks.to_string(),
            counts.buffered.to_string(),
            format!("{:.2}", counts.busy().as_secs_f64()),
            format!("{:.1}", 100.0 * counts.busy().as_secs_f64() / model_seconds),
        ]);
    }
    format!("{}\nbusy: seconds of the model", table.render())
}

#[expect(clippy::cast_precision_loss, reason = "measures")]
fn records((index, counts): (usize, &MechanicalCounts), model_seconds: f64) -> Vec<Record> {
    let subject = format!("disk{}", index + 1);
    let measures = [
        ("device_reads", counts.device_reads as f64, "count"),
        ("device_writes", counts.device_writes as f64, "count"),
        ("bytes_read", counts.bytes_read as f64, "bytes"),
        ("bytes_written", counts.bytes_written as f64, "bytes"),
        ("seeks", counts.seeks as f64, "count"),
        ("busy_seconds", counts.busy().as_secs_f64(), "s"),
        ("busy_share", counts.busy().as_secs_f64() / model_seconds, "share"),
    ];
    let record = |(name, value, unit): (&str, f64, &str)| {
        Record::Measure(Measure::once(name, &subject, value, unit))
    };
    measures.into_iter().map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::factor;

    #[test]
    fn a_factor_is_a_positive_number_with_or_without_x() {
        assert_eq!((factor("10x"), factor("0.5")), (Ok(10.0), Ok(0.5)));
        for text in ["", "x", "0x", "-1x", "nanx", "1e9x", "10xx"] {
            assert!(factor(text).is_err(), "{text}");
        }
    }
}
