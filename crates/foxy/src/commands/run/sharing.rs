//! Shares the store of a running `foxy run` with further runs. The process that has the store
//! *offers* its proxy in a file beside the store, and holds a lock on this file until it ends. So
//! the kernel tells the other processes whether the offer still holds.

use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The content of the file with the offer.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    pub process: u32,
    pub address: SocketAddr,
    /// Certificate, in PEM, of the authority with which the proxy intercepts TLS.
    pub authority: String,
    /// A hash of the settings that decide about the proxy's answers. A run whose hash differs does
    /// not use this proxy.
    pub terms: u64,
}

/// An offer (file that shares the store) of this process. Dropping this value withdraws the offer.
#[derive(Debug)]
pub struct OwnOffer {
    path: PathBuf,
    /// The lock ends when this file is closed.
    _locked: File,
}

impl Drop for OwnOffer {
    fn drop(&mut self) {
        // If the file stays, its lock still ends with this process.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// An offer of another process to share its store.
#[derive(Debug)]
pub struct FoundOffer {
    pub offer: Offer,
    file: File,
}

impl FoundOffer {
    /// Calls `ended` when the other process has ended or withdraws its offer (file that shares the
    /// store).
    pub fn watch(self, ended: impl FnOnce() + Send + 'static) {
        let wait = move || {
            if self.file.lock_shared().is_ok() {
                ended();
            }
        };
        // If the thread cannot start, this process only tries the other proxy again from time to
        // time.
        let _ = std::thread::Builder::new().name("sharing".into()).spawn(wait);
    }
}

fn path(store: &Path) -> PathBuf {
    store.with_extension("proxy")
}

/// Offers the proxy of this process to further runs.
pub fn offer(store: &Path, offer: &Offer) -> std::io::Result<OwnOffer> {
    let (path, new) = (path(store), store.with_extension(format!("proxy-{}", offer.process)));
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.lock()?;
    file.write_all(&serde_json::to_vec(offer)?)?;
    std::fs::rename(&new, &path)?;
    Ok(OwnOffer { path, _locked: file })
}

/// Returns the offer (file that shares the store) of the process that has the store. Returns `None`
/// if this process has ended, or has no offer yet.
pub fn find(store: &Path) -> Option<FoundOffer> {
    let mut file = File::open(path(store)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        Ok(()) | Err(TryLockError::Error(_)) => return None,
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    Some(FoundOffer { offer: serde_json::from_str(&text).ok()?, file })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn an_offer_holds_until_its_process_withdraws_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("foxy-run");
        assert!(find(&store).is_none());
        let made = |terms| Offer {
            process: 7,
            address: ([127, 0, 0, 1], 4000).into(),
            authority: "PEM".into(),
            terms,
        };
        let own = offer(&store, &made(1)).expect("written");
        let found = find(&store).expect("it holds");
        assert_eq!(found.offer, made(1));
        let (sender, told) = channel();
        found.watch(move || sender.send(()).expect("the test waits"));
        drop(own);
        told.recv().expect("it has ended");
        let stale = serde_json::to_vec(&made(2)).expect("written");
        std::fs::write(folder.path().join("foxy-run.proxy"), stale).expect("written");
        assert!(find(&store).is_none(), "no process holds it");
    }
}
