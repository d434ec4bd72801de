//! Reads and writes times in logs and queries. A time is a number of milliseconds since the Unix
//! epoch.

use foxy_base::{CivilTime, WallTime, log_time};

/// Reads a time such as `2026-11-26T23:00:05.250Z`, or a number of seconds with a fraction.
pub(crate) fn parse(text: &str) -> Option<u64> {
    milliseconds(log_time::parse(text)?)
}

/// Reads a time of the Common Log Format, such as `10/Oct/2000:13:55:36 -0700`.
pub(crate) fn common_log(text: &str) -> Option<u64> {
    milliseconds(log_time::common_log(text)?)
}

fn milliseconds(micros: i64) -> Option<u64> {
    u64::try_from(micros / 1000).ok()
}

/// Writes a time such as `2026-11-26T23:00:05.250Z`.
pub fn shown(time: u64) -> String {
    let at = CivilTime::of(WallTime(time));
    let millis = time % 1000;
    format!("{at}T{:02}:{:02}:{:02}.{millis:03}Z", at.hour, at.minute, at.second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_times_come_back() {
        for day in (0..40_000).step_by(7) {
            let time = day * 86_400_000 + 12_345_678;
            assert_eq!(parse(&shown(time)), Some(time));
        }
        assert_eq!(parse("1286536308.779"), Some(1_286_536_308_779));
        assert_eq!(parse("1969-12-31T23:59:59Z"), None);
        assert_eq!(common_log("10/Oct/2000:13:55:36 -0700"), Some(971_211_336_000));
    }
}
