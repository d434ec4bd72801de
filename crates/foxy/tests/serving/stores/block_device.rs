//! Tests a store on a block device, through a link in the store's folder. The store must survive a
//! kill. fsck must check it, and foxy must not overwrite other data on a device. The tests use loop
//! devices. Without loop devices, they only print that they did not run.

use crate::support::commands::{self, ended};
use crate::support::loop_device::LoopDevice;
use crate::support::{Foxy, Origin, refused, refused_plain};
use foxy_base::Instant;
use foxy_device::{
    Blocking, BlockingDevice, DirectIo, FileId, IoBuffer, IoDone, IoError, IoId, IoOp, IoOutput,
    Root, StorePath, Threads, Uring,
};
use foxy_testkit::wait::until;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

const NAME: &str = "webcosm.foxy";
const BYTES: u64 = 64 << 20;

fn check_refused(folder: &Path, more: &[&str], expected: &str) {
    let (code, report) = refused_plain(folder, more);
    assert_eq!((code, report.lines().count()), (Some(2), 1), "{report}");
    assert!(report.contains(expected), "{report:?} does not say {expected:?}");
}

fn looked_over(arguments: &[&str], path: &Path) -> (Option<i32>, String) {
    let (code, out, err) = ended(commands::command(arguments).arg(path));
    (code, out + &err)
}

/// Returns the number of bytes that the store has written.
fn written(foxy: &Foxy) -> f64 {
    let metrics = foxy.admin("/metrics").body;
    let line = metrics.lines().find(|line| line.starts_with("foxy_store_written_bytes_total"));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).expect("a number")
}

/// Waits until the store has rebuilt its index. On a busy machine, foxy may serve before that.
fn wait_for_index(foxy: &Foxy, origin: &Origin) {
    let early = || foxy.metric::<u64>("foxy_store_misses_recovering_total");
    let mut probes = 0..;
    until("the index", || {
        let before = early();
        foxy.get(&origin.url(&format!("probe{}", probes.next()?)));
        (early() == before).then_some(())
    });
}

#[test]
fn a_store_takes_all_of_a_device_and_its_objects_are_back_after_a_kill() {
    let Some(device) = LoopDevice::new(BYTES) else { return };
    let (folder, origin) = (device.linked_as(NAME), Origin::start());
    let urls: Vec<_> = (0..40).map(|number| origin.url(&format!("page{number}"))).collect();
    let foxy = Foxy::start_plain(folder.path(), &[]);
    assert!(foxy.welcome.contains("(64 MiB, webcosm, "), "{}", foxy.welcome);
    let before = written(&foxy);
    let bytes: usize = urls.iter().map(|url| foxy.get(url).body.len()).sum();
    while written(&foxy) < before + bytes as f64 {
        std::thread::yield_now();
    }
    assert_eq!(foxy.admin("/healthz").status, 200);
    foxy.kill();
    let foxy = Foxy::start_plain(folder.path(), &[]);
    assert!(foxy.welcome.contains("(64 MiB, webcosm, "), "{}", foxy.welcome);
    wait_for_index(&foxy, &origin);
    let answers: Vec<_> = urls.iter().map(|url| foxy.get(url)).collect();
    for (number, answer) in answers.iter().enumerate() {
        assert!(answer.body.starts_with(&format!("the page /page{number}\n")), "{answer:?}");
    }
    let hits = answers.iter().filter(|answer| answer.cache_status().contains("foxy; hit")).count();
    assert!(hits > 30, "{hits} of {}", urls.len());
    assert!(folder.path().join(NAME).is_symlink(), "the link stays");
}

#[test]
fn a_device_is_one_foxys_and_not_looked_over_meanwhile() {
    let Some(device) = LoopDevice::new(BYTES) else { return };
    let (folder, other, origin) = (device.linked_as(NAME), device.linked_as(NAME), Origin::start());
    let foxy = Foxy::start_plain(folder.path(), &[]);
    foxy.get(&origin.url("page"));
    let named = other.path().join(NAME);
    check_refused(
        other.path(),
        &[],
        &format!("store {}: the device it leads to is in use", named.display()),
    );
    for command in [&["fsck"][..], &["store", "inspect"]] {
        let (code, said) = looked_over(command, other.path());
        assert!(code == Some(2) && said.contains("in use by a running foxy"), "{said}");
    }
    foxy.signal("TERM");
    assert_eq!(foxy.wait().0.code(), Some(0));
    let before = device.content();
    for path in [other.path(), &named] {
        let (code, said) = looked_over(&["fsck"], path);
        assert!(
            code == Some(0) && said.contains("1 records, ") && said.contains("no damage"),
            "{said}"
        );
        let (code, said) = looked_over(&["store", "inspect"], path);
        assert_eq!(code, Some(0), "{said}");
    }
    assert!(device.content() == before, "nothing is written");
}

#[test]
fn a_device_that_was_detached_is_said_to_have_no_bytes() {
    let Some(mut device) = LoopDevice::new(BYTES) else { return };
    let folder = device.linked_as(NAME);
    let foxy = Foxy::start_plain(folder.path(), &[]);
    foxy.signal("TERM");
    assert_eq!(foxy.wait().0.code(), Some(0));
    let nobody_attaches = device.detach();
    let at = folder.path().join(NAME);
    let expected =
        format!("store {}: a block device of 0 bytes: no disk is attached", at.display());
    for more in [&[][..], &["--size", "16M"], &["--size", "1T"]] {
        check_refused(folder.path(), more, &expected);
    }
    for command in [&["fsck"][..], &["store", "inspect"]] {
        for path in [folder.path(), &at] {
            let (code, said) = looked_over(command, path);
            assert!(
                code == Some(2) && said.contains(&expected) && said.contains("; attach a disk"),
                "{said}"
            );
        }
    }
    drop(nobody_attaches);
}

#[test]
fn a_device_with_a_file_system_is_refused_and_left_as_it_is() {
    let Some(device) = LoopDevice::new(BYTES) else { return };
    device.make_ext4();
    let (folder, before) = (device.linked_as(NAME), device.content());
    let expected = format!(
        "store {}: the device holds data of another program",
        folder.path().join(NAME).display()
    );
    for more in [&[][..], &["--size", "16M"], &["--device", "threads"], &["--device", "helper"]] {
        check_refused(folder.path(), more, &expected);
    }
    for command in [&["fsck"][..], &["store", "inspect"]] {
        let (code, said) = looked_over(command, folder.path());
        assert!(code == Some(2) && said.contains(&expected), "{said}");
    }
    assert!(device.content() == before, "nothing is written");
}

#[test]
fn what_lies_at_the_end_of_a_device_is_left_until_it_is_erased_as_the_refusal_says() {
    let Some(device) = LoopDevice::new(BYTES) else { return };
    let folder = device.linked_as(NAME);
    // Places at the end of a device that other programs use: the backup of a partition table, and
    // the description of a disk array (metadata version 1.0).
    for at in [BYTES - 512, BYTES - 8192] {
        let disk = File::options().write(true).open(device.path()).expect("a device");
        disk.write_all_at(b"EFI PART", at).expect("written");
        drop(disk);
        let before = device.content();
        let (code, report) = refused_plain(folder.path(), &[]);
        assert!(
            code == Some(2) && report.contains(&format!("data of another program at byte {at}, ")),
            "{report}"
        );
        let (code, said) = looked_over(&["fsck"], folder.path());
        assert!(code == Some(2) && said.contains(&format!("at byte {at}, ")), "{said}");
        assert!(device.content() == before, "nothing is written");
        let (_, advice) = report.trim_end().split_once("with zeros: ").expect("advice");
        let advice = advice.replace("DEVICE", device.path().to_str().expect("UTF-8"));
        let mut shell = Command::new("sh");
        let erased =
            shell.args(["-c", &advice]).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").status();
        assert!(erased.expect("a shell").success(), "{advice}");
    }
    let foxy = Foxy::start_plain(folder.path(), &[]);
    assert!(foxy.welcome.contains("(64 MiB, webcosm, "), "{}", foxy.welcome);
}

#[test]
fn a_device_that_is_read_only_is_said_to_be_and_can_be_looked_over() {
    let Some(device) = LoopDevice::new(BYTES) else { return };
    let folder = device.linked_as(NAME);
    drop(Foxy::start_plain(folder.path(), &[]));
    device.make_read_only(true);
    let expected =
        format!("store {}: the device is read-only; ", folder.path().join(NAME).display());
    for way in ["auto", "threads", "blocking", "helper"] {
        check_refused(folder.path(), &["--device", way], &expected);
    }
    let (code, said) = looked_over(&["fsck"], folder.path());
    assert!(code == Some(0) && said.contains("no damage"), "{said}");
    let (code, said) = looked_over(&["fsck"], device.path());
    assert!(code == Some(2) && said.contains("a block device; name the store's folder"), "{said}");
}

#[test]
fn a_mounted_device_is_refused() {
    let Some(device) = LoopDevice::new(BYTES) else { return };
    device.make_ext4();
    let (folder, mounted) = (device.linked_as(NAME), tempfile::tempdir().expect("a folder"));
    let foxy = crate::support::command(folder.path(), &[]);
    let mut inside = Command::new("unshare");
    inside.args(["--mount", "--", "sh", "-c", "mount \"$0\" \"$1\" && shift && exec \"$@\""]);
    inside.arg(device.path()).arg(mounted.path()).arg(foxy.get_program()).args(foxy.get_args());
    let (code, _, report) = ended(&mut inside);
    assert_eq!(code, Some(2), "{report}");
    assert!(report.contains("the device it leads to is in use: mounted"), "{report}");
}

#[test]
fn a_size_that_the_device_does_not_have_is_refused_and_a_smaller_one_kept() {
    let Some(device) = LoopDevice::new(BYTES) else { return };
    let folder = device.linked_as(NAME);
    let expected = "the size is 65 MiB, but the disk has room for 67108864 bytes; set at most 64M";
    check_refused(folder.path(), &["--size", "65M"], expected);
    assert!(device.content().iter().all(|&byte| byte == 0), "nothing is written");
    for more in [&["--size", "32M"][..], &[]] {
        let foxy = Foxy::start_plain(folder.path(), more);
        assert!(foxy.welcome.contains("(32 MiB, webcosm, "), "{}", foxy.welcome);
    }
}

#[test]
fn a_device_is_taken_by_its_link_and_by_webcosm_alone() {
    let Some(device) = LoopDevice::new(BYTES) else { return };
    let expected = format!("ln -s {} FOLDER/{NAME}", device.path().display());
    check_refused(device.path(), &[], &expected);
    for (scheme, name) in [("stream-packetizer", "stream-packetizer.foxy"), ("coss", "coss.foxy")] {
        let folder = device.linked_as(name);
        let (code, report) = refused(folder.path(), &["--scheme", scheme]);
        assert!(code == Some(2) && report.contains("a link, folder or pipe"), "{report}");
    }
    assert!(device.content().iter().all(|&byte| byte == 0), "nothing is written");
}

#[test]
fn a_link_that_is_removed_or_leads_elsewhere_in_use_is_said_at_once() {
    let Some(device) = LoopDevice::new(BYTES) else { return };
    let (folder, origin) = (device.linked_as(NAME), Origin::start());
    let mut foxy = Foxy::start_plain(folder.path(), &[]);
    let link = folder.path().join(NAME);
    std::fs::remove_file(&link).expect("a link");
    foxy.report_containing("the link to the device was removed");
    std::os::unix::fs::symlink("/dev/null", &link).expect("made");
    foxy.report_containing("the link to the device was changed or replaced");
    let health = foxy.admin("/healthz");
    assert!(health.status == 503 && health.body.contains("changed or replaced"), "{health:?}");
    let answer = foxy.get(&origin.url("page"));
    assert!(answer.body.starts_with("the page /page"), "{answer:?}");
}

fn run(device: &mut dyn BlockingDevice, op: IoOp) -> IoDone {
    let mut done = Vec::new();
    device.submit(IoId(1), op, Instant::ZERO);
    while done.is_empty() {
        device.wait(None);
        device.reap(Instant::ZERO, &mut done);
    }
    done.remove(0)
}

/// Returns devices of every kind (such as io_uring and threads), with and without the page cache.
fn ways(root: &Root) -> Vec<(&'static str, Box<dyn BlockingDevice>)> {
    let mut ways: Vec<(_, Box<dyn BlockingDevice>)> = Vec::new();
    for direct in [DirectIo::Off, DirectIo::WhenAligned] {
        ways.push(("blocking", Box::new(Blocking::new(root, direct))));
        ways.push(("threads", Box::new(Threads::new(root, 2, direct).expect("threads start"))));
        if let Ok(device) = Uring::new(root, 4, direct) {
            ways.push(("uring", Box::new(device)));
        }
    }
    ways
}

#[test]
fn a_device_is_read_and_written_to_its_end_and_never_cut_made_longer_or_trimmed() {
    let Some(device) = LoopDevice::new(BYTES) else { return };
    let folder = device.linked_as("x");
    let root = Root::open(folder.path()).expect("opens");
    let (file, path) = (FileId(3), StorePath::new("x"));
    for (number, (way, mut disk)) in (1_u8..).zip(ways(&root)) {
        let disk = &mut *disk;
        let opened = run(disk, IoOp::OpenBlockDevice { file, path: path.clone() });
        assert!(matches!(opened.result, Ok(IoOutput::Opened { size: BYTES })), "{way}: {opened:?}");
        for (offset, length) in [(0, 8192), (BYTES - 4096, 4096), (5_000, 700)] {
            let buffer = IoBuffer::copy_of(&vec![number; length]);
            let done = run(disk, IoOp::Write { file, offset, buffer });
            assert!(
                matches!(done.result, Ok(IoOutput::Moved { count }) if count == length),
                "{way}: {done:?}"
            );
        }
        let beyond = IoOp::Write { file, offset: BYTES, buffer: IoBuffer::zeroed(4096) };
        assert_eq!(run(disk, beyond).result.err(), Some(IoError::NoSpace), "{way}");
        for op in [IoOp::Sync { file }, IoOp::Trim { file, offset: 0, length: BYTES }] {
            assert!(run(disk, op).result.is_ok(), "{way}");
        }
        let done =
            run(disk, IoOp::Read { file, offset: BYTES - 4096, buffer: IoBuffer::zeroed(8192) });
        assert!(matches!(done.result, Ok(IoOutput::Moved { count: 4096 })), "{way}: {done:?}");
        let read = done.buffer.expect("it comes back");
        assert!(read.as_ref()[..4096].iter().all(|&byte| byte == number), "{way}");
        for op in [
            IoOp::Open { file, path: path.clone() },
            IoOp::Create { file, path: path.clone(), size: 1 << 20 },
        ] {
            assert_eq!(run(disk, op).result.err(), Some(IoError::WrongKind), "{way}");
        }
    }
}
