//! Computes where sectors are on a simulated disk, and the times of its head: seek, rotation and
//! transfer. The module contains only arithmetic in nanoseconds.

use super::profile::DiskProfile;
use std::time::Duration;

/// The parts of a disk request's duration, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Nanoseconds to move the arm or to switch to another head.
    pub(crate) seek: u64,
    /// Nanoseconds of rotational delay before the first sector.
    pub(crate) rotation: u64,
    /// Nanoseconds from the start of the first sector to the end of the last sector, including
    /// switches to other tracks.
    pub(crate) transfer: u64,
}

impl Parts {
    pub(crate) const fn total(&self) -> u64 {
        self.seek + self.rotation + self.transfer
    }
}

#[derive(Debug)]
pub(crate) struct Geometry {
    heads: u64,
    sectors_per_track: u64,
    track_skew: u64,
    cylinder_shift: u64,
    /// Time in which one sector passes the head, as a whole number of nanoseconds. One rotation
    /// takes exactly the sum of its sectors' times, so consecutive sectors follow without a gap.
    sector_time: u64,
    turn: u64,
    head_switch: u64,
    seek: Vec<u64>,
}

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Geometry {
    pub(crate) fn new(profile: &DiskProfile) -> Self {
        let sectors_per_track = u64::from(profile.sectors_per_track);
        let sector_time =
            60_000_000_000 / (u64::from(profile.turns_per_minute) * sectors_per_track);
        let (heads, track_skew) = (u64::from(profile.heads), u64::from(profile.track_skew));
        Self {
            heads,
            sectors_per_track,
            track_skew,
            cylinder_shift: (heads - 1) * track_skew + u64::from(profile.cylinder_skew),
            sector_time,
            turn: sector_time * sectors_per_track,
            head_switch: nanoseconds(profile.head_switch),
            seek: seek_table(profile),
        }
    }

    pub(crate) const fn turn(&self) -> u64 {
        self.turn
    }

    pub(crate) const fn track_of(&self, sector: u64) -> u64 {
        sector / self.sectors_per_track
    }

    pub(crate) const fn cylinder_of(&self, track: u64) -> u64 {
        track / self.heads
    }

    /// Returns the times (seek, rotation, transfer) of a disk request for `sectors` sectors from
    /// sector `first`. At time `start`, the head is on track `track`. The disk's start angle is
    /// already added to `start`.
    pub(crate) fn service(&self, track: u64, start: u64, first: u64, sectors: u64) -> Parts {
        let mut at = self.track_of(first);
        let seek = self.travel(track, at);
        let rotation = self.wait(start + seek, at, first % self.sectors_per_track);
        let begin = start + seek + rotation;
        let (mut now, mut left) = (begin, sectors);
        let mut from = first % self.sectors_per_track;
        loop {
            let here = left.min(self.sectors_per_track - from);
            now += here * self.sector_time;
            left -= here;
            if left == 0 {
                return Parts { seek, rotation, transfer: now - begin };
            }
            now += self.travel(at, at + 1);
            at += 1;
            from = 0;
            now += self.wait(now, at, 0);
        }
    }

    /// Returns the number of consecutive sectors that pass under the head in `time`. Subtracts the
    /// mean time of switches between tracks.
    pub(crate) fn sectors_in(&self, time: Duration) -> u64 {
        let tracks = self.heads * self.sectors_per_track;
        nanoseconds(time) / self.sector_time * tracks / (tracks + self.cylinder_shift)
    }

    fn travel(&self, from: u64, to: u64) -> u64 {
        let distance = self.cylinder_of(from).abs_diff(self.cylinder_of(to));
        if distance == 0 && from != to {
            return self.head_switch;
        }
        usize::try_from(distance)
            .ok()
            .and_then(|distance| self.seek.get(distance))
            .copied()
            .unwrap_or(0)
    }

    /// Returns the time in nanoseconds from `now` until sector number `sector` of the track reaches
    /// the head.
    const fn wait(&self, now: u64, track: u64, sector: u64) -> u64 {
        let skew =
            self.cylinder_of(track) * self.cylinder_shift + track % self.heads * self.track_skew;
        let angle = (sector + skew) % self.sectors_per_track * self.sector_time;
        (angle + self.turn - now % self.turn) % self.turn
    }
}

/// Returns the seek time in nanoseconds for each distance in cylinders. Up to the distance
/// `seek_bend` the times follow a square-root curve, then a straight line. The curve starts at the
/// shortest seek time, and the line ends at the longest. The time at `seek_bend` is chosen so that
/// the mean seek time equals the mean of the profile.
fn seek_table(profile: &DiskProfile) -> Vec<u64> {
    let cylinders = f64::from(profile.cylinders);
    let shares: Vec<f64> = (0..profile.cylinders)
        .map(|distance| 2.0 * (cylinders - f64::from(distance)) / (cylinders * cylinders))
        .collect();
    let mean_at = |height: f64| -> f64 {
        let times = (1..profile.cylinders).map(|distance| seek_time(profile, height, distance));
        shares[1..].iter().zip(times).map(|(share, time)| share * time).sum()
    };
    let (flat, unit) = (mean_at(0.0), mean_at(1.0));
    let height = (profile.seek_mean.as_secs_f64() - flat) / (unit - flat);
    let time = |distance| Duration::from_secs_f64(seek_time(profile, height, distance).max(0.0));
    std::iter::once(0)
        .chain((1..profile.cylinders).map(|distance| nanoseconds(time(distance))))
        .collect()
}

/// Returns the time in seconds of a seek over `distance` cylinders. `height` is the time of a seek
/// over `seek_bend` cylinders. The result is a linear function of `height`.
fn seek_time(profile: &DiskProfile, height: f64, distance: u32) -> f64 {
    let (shortest, longest) =
        (profile.seek_shortest.as_secs_f64(), profile.seek_longest.as_secs_f64());
    let (bend, last) = (f64::from(profile.seek_bend), f64::from(profile.cylinders - 1));
    let distance = f64::from(distance);
    if distance <= bend {
        shortest + (height - shortest) * (distance.sqrt() - 1.0) / (bend.sqrt() - 1.0)
    } else {
        height + (longest - height) * (distance - bend) / (last - bend)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seek_times_grow_and_have_their_ends_and_their_mean() {
        let profile = DiskProfile::st15150w();
        let seek = Geometry::new(&profile).seek;
        assert!(seek.is_sorted());
        assert_eq!((seek[0], seek[1]), (0, 1_100_000));
        assert!(seek[4644].abs_diff(19_000_000) <= 1);
        let count = f64::from(profile.cylinders);
        let sum: f64 = (1u32..)
            .zip(&seek[1..])
            .map(|(d, &time)| 2.0 * (count - f64::from(d)) * time as f64)
            .sum();
        assert!((sum / count / count - 9e6).abs() < 10.0, "mean {}", sum / count / count);
    }

    #[test]
    fn consecutive_sectors_cost_no_turn_across_tracks_and_cylinders() {
        let geometry = Geometry::new(&DiskProfile::st15150w());
        let track = 86 * geometry.sector_time;
        let start = geometry.service(0, 0, 0, 86).total();
        assert_eq!(start, track);
        for tracks in [2, 21, 22, 100] {
            let whole = geometry.service(0, 0, 0, tracks * 86);
            assert!(
                whole.transfer < tracks * track * 8 / 7,
                "{tracks} tracks in {}",
                whole.transfer
            );
            let first = geometry.service(0, 0, 0, tracks * 86 - 40);
            let rest = geometry.service(tracks - 1, first.total(), tracks * 86 - 40, 40);
            assert_eq!((rest.seek, rest.rotation), (0, 0));
            assert_eq!(first.total() + rest.total(), whole.total());
        }
    }

    #[test]
    fn the_same_sector_again_costs_a_turn() {
        let geometry = Geometry::new(&DiskProfile::st15150w());
        let once = geometry.service(0, 12_345, 700, 1);
        let again = geometry.service(geometry.track_of(700), 12_345 + once.total(), 700, 1);
        assert_eq!(again.total(), geometry.turn());
    }
}
