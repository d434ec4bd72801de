//! Raises the limit on open files for a load, and refuses a load that needs more.

use foxy_cli::failure::Failure;
use foxy_cli::process::raise_open_files;

/// Descriptors of files, runtimes and terminals, beside connections.
const OWN: u64 = 64;

pub fn provide(connections: u64, what: &str) -> Result<(), Failure> {
    refuse(connections, what, raise_open_files())
}

fn refuse(connections: u64, what: &str, limit: Option<u64>) -> Result<(), Failure> {
    let needed = connections.saturating_add(OWN);
    match limit {
        Some(limit) if needed > limit => Err(Failure::Unusable(format!(
            "{what}: takes up to {needed} open files, and this process may have {limit}; ask for less or raise ulimit -n"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_suffice_is_refused_before_anything_is_sent() {
        assert!(refuse(900, "--clients 900", Some(1000)).is_ok());
        assert!(refuse(u64::MAX, "--clients 900", None).is_ok());
        let text = refuse(990, "--clients 990", Some(1000)).expect_err("too many").to_string();
        assert_eq!(
            text,
            "--clients 990: takes up to 1054 open files, and this process may have 1000; ask for less or raise ulimit -n"
        );
    }
}
