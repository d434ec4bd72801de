//! Tests a disk that hangs: operations neither fail nor end. To simulate this, the test suspends
//! the helper process that performs the store's disk operations.

use crate::support::{Foxy, Origin, commands};
use foxy_base::clock;
use std::time::Duration;

#[test]
fn a_disk_that_hangs_is_named_costs_hits_only_and_does_not_keep_foxy_from_ending() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let flags = ["--device", "helper", "--stop-after", "1s"];
    let mut foxy = Foxy::start_plain(folder.path(), &flags);
    assert_eq!(foxy.get(&origin.url("page1")).status, 200);
    let disk = foxy.children();
    disk.iter().for_each(|&process| commands::signal(process, "STOP"));
    let begun = clock::monotonic();
    let mut number = 1;
    while foxy.admin("/healthz").status == 200 {
        assert!(clock::monotonic().since(begun) < Duration::from_secs(60), "nobody noticed");
        number += 1;
        assert_eq!(foxy.get(&origin.url(&format!("page{number}"))).status, 200);
        std::thread::sleep(Duration::from_millis(200));
    }
    let health = foxy.admin("/healthz").body;
    assert!(health.contains("its disk has not answered for more than 10 seconds"), "{health}");
    foxy.report_containing("its disk has not answered");
    foxy.signal("TERM");
    foxy.report_containing("its disk does not answer; foxy stopped without it");
    assert_eq!(foxy.wait().0.code(), Some(0));
    disk.iter().for_each(|&process| commands::signal(process, "CONT"));
}
