//! Tests a foxy with two stores, one on a failing device. foxy must take this store out of use, and
//! store its URLs in the other store. The test needs a loop device. Without a loop device, the test
//! only prints that it did not run.

use crate::support::loop_device::LoopDevice;
use crate::support::{Foxy, Origin, request};
use foxy_base::clock;
use std::time::Duration;

const NAME: &str = "webcosm.foxy";

/// Reads a whole number from the metrics of the admin server.
fn value(foxy: &Foxy, name: &str) -> u64 {
    let metrics = foxy.admin("/metrics").body;
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)).expect("it is there");
    line.trim().parse().expect("a number")
}

#[test]
fn a_store_whose_device_fails_is_taken_out_of_use_and_the_other_takes_its_urls() {
    let Some(device) = LoopDevice::new(64 << 20) else { return };
    let (folder, other, origin) =
        (tempfile::tempdir().expect("a folder"), device.linked_as(NAME), Origin::start());
    let flags = ["--size", "64M", "--store", other.path().to_str().expect("UTF-8")];
    let mut foxy = Foxy::start_plain(folder.path(), &flags);
    let failing = other.path().display();
    let name = format!("foxy_store_out_of_use{{store=\"{failing}\"}}");
    let out = |foxy: &Foxy| value(foxy, &name) == 1;
    assert!(!out(&foxy));
    device.make_read_only(true);
    let (begun, mut number) = (clock::monotonic(), 0);
    while !out(&foxy) {
        assert!(
            clock::monotonic().since(begun) < Duration::from_secs(100),
            "{:?}",
            foxy.admin("/healthz")
        );
        for _ in 0..50 {
            number += 1;
            assert!(foxy.get(&origin.url(&format!("large{number}"))).status == 200);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    foxy.report_containing(&format!(
        "store {failing}: out of use, because reads and writes fail again and again"
    ));
    let taken = format!("foxy_store_puts_total{{store=\"{}\"}}", folder.path().display());
    let before = value(&foxy, &taken);
    (0..40).for_each(|number| drop(foxy.get(&origin.url(&format!("page{number}")))));
    while value(&foxy, &taken) < before + 40 {
        std::thread::yield_now();
    }
    let health = foxy.admin("/healthz");
    assert!(health.status == 503 && health.body.contains("out of use"), "{health:?}");
    foxy.signal("TERM");
    assert_eq!(foxy.wait().0.code(), Some(0));
    device.make_read_only(false);
    let foxy = Foxy::start_plain(folder.path(), &flags);
    for path in [folder.path(), other.path()] {
        let forgotten = format!(
            "store {}: the disk of a store failed, and foxy then used only the other stores",
            path.display()
        );
        assert!(foxy.welcome.contains(&forgotten), "{}", foxy.welcome);
    }
}

#[test]
fn what_a_failing_device_did_not_forget_does_not_come_back_when_it_works_again() {
    let Some(device) = LoopDevice::new(64 << 20) else { return };
    let (folder, other, origin) =
        (tempfile::tempdir().expect("a folder"), device.linked_as(NAME), Origin::start());
    let flags = ["--size", "64M", "--store", other.path().to_str().expect("UTF-8")];
    let urls: Vec<_> = (0..20).map(|number| origin.url(&format!("page{number}"))).collect();
    let foxy = Foxy::start_plain(folder.path(), &flags);
    urls.iter().for_each(|url| drop(foxy.get(url)));
    foxy.signal("TERM");
    assert_eq!(foxy.wait().0.code(), Some(0));
    let mut foxy = Foxy::start_plain(folder.path(), &flags);
    device.make_read_only(true);
    for url in &urls[..19] {
        let head = format!(
            "POST {url} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(request(foxy.proxy, &head).status, 200);
    }
    foxy.signal("TERM");
    foxy.report_containing("URLs, because a store did not confirm their removal");
    assert_eq!(foxy.wait().0.code(), Some(0));
    device.make_read_only(false);
    let foxy = Foxy::start_plain(folder.path(), &flags);
    let hit = |url: &String| foxy.get(url).cache_status().contains("hit");
    assert!(!urls[..19].iter().any(hit), "what was invalidated came back");
    assert!(hit(&urls[19]), "what was not is kept");
}
