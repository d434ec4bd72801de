//! Tests `foxy disk serve`, which simulates a slow disk as a file. The file must return the written
//! bytes, and each request must take the time that the model of the disk computes.

use crate::support::commands::{command, records, signal, value};
use foxy_base::clock;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, Stdio};

/// Distance in bytes between the offsets of two requests. It is so large that each request needs a
/// seek and, on average, half a rotation of the disk.
const STRIDE: u64 = 150_000_000;

const REQUESTS: u64 = 20;

/// A running `foxy disk serve`. Drop ends the command and its mount, even after a panic.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        signal(self.0.id(), "TERM");
        let _ = self.0.wait();
    }
}

#[test]
fn a_modelled_disk_keeps_its_bytes_and_takes_its_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mount, json) = (folder.path().join("mount"), folder.path().join("records.jsonl"));
    std::fs::create_dir(&mount).expect("created");
    let mut serve = command(&["disk", "serve", "--time", "2x"]);
    serve.arg(&mount).arg("--json").arg(&json).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut served = Served(serve.spawn().expect("it runs"));
    let mut line = String::new();
    let out = served.0.stdout.as_mut().expect("piped");
    BufReader::new(out).read_line(&mut line).expect("readable");
    if line.is_empty() {
        let mut why = String::new();
        served.0.stderr.as_mut().expect("piped").read_to_string(&mut why).expect("UTF-8");
        assert!(why.contains("cannot mount"), "{why}");
        let text = "\nNOT RUN: a test of modelled disks: no FUSE mount here\n";
        std::io::stderr().write_all(text.as_bytes()).expect("standard error is writable");
        return;
    }
    let disk = OpenOptions::new().read(true).write(true).open(mount.join("disk1")).expect("served");
    let began = clock::monotonic();
    for request in 0..REQUESTS {
        let offset = (request * 7 % REQUESTS) * STRIDE;
        disk.write_all_at(&[request as u8; 4096], offset).expect("within the disk");
        let mut data = [0; 4096];
        disk.read_exact_at(&mut data, offset).expect("within the disk");
        assert_eq!(data, [request as u8; 4096]);
    }
    let took = clock::monotonic().since(began);
    // Each write takes at least a seek, 3 ms. A slow test machine only adds time.
    assert!(took.as_secs_f64() > 0.003 * REQUESTS as f64, "{took:?}");
    assert!(disk.write_all_at(&[0; 512], 4_295_101_440).is_err(), "beyond the end");
    drop(disk);
    drop(served);
    let records = records(&json);
    assert_eq!(value(&records, "device_writes"), REQUESTS as f64);
    assert!(value(&records, "busy_seconds") > 0.006 * REQUESTS as f64);
}
