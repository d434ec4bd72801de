//! Which column of a table means what, by its name. Shared by CSV and Parquet.

use super::read_error::ReadError;

/// What a column can mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// When: see [`timestamp`](super::timestamp).
    Time,
    /// Who; without it all gets are one client's.
    Client,
    /// What.
    Url,
    /// Bytes of the answer.
    Bytes,
    /// HTTP method; without it all are GET.
    Method,
    /// HTTP status; without it all are 200.
    Status,
}

/// Names that each meaning is known by, the usual one first.
const NAMES: [(Column, &[&str]); 6] = [
    (Column::Time, &["time", "timestamp", "ts", "date", "datetime"]),
    (Column::Client, &["client", "client_ip", "clientip", "remote_addr", "host_ip", "user"]),
    (Column::Url, &["url", "uri", "request_url", "key", "object", "path"]),
    (
        Column::Bytes,
        &["bytes", "size", "body_bytes_sent", "bytes_sent", "response_bytes", "object_size"],
    ),
    (Column::Method, &["method", "request_method", "verb"]),
    (Column::Status, &["status", "status_code", "response_status", "code"]),
];

/// Where each meaning's column stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns {
    places: [Option<usize>; 6],
}

impl Columns {
    /// Finds the columns by their names, in any order and case.
    ///
    /// # Errors
    /// When none is a time, a URL or a size.
    pub(super) fn find<'a>(
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<Self, ReadError> {
        let place = |known: &[&str]| {
            known.iter().find_map(|known| {
                names.clone().position(|name| name.trim().eq_ignore_ascii_case(known))
            })
        };
        let columns = Self { places: NAMES.map(|(_, known)| place(known)) };
        for needed in [Column::Time, Column::Url, Column::Bytes] {
            if columns.place(needed).is_none() {
                return Err(ReadError::NoColumn(NAMES[needed as usize].1[0]));
            }
        }
        Ok(columns)
    }

    /// Where the column with this meaning stands, if there is one.
    pub(super) fn place(&self, column: Column) -> Option<usize> {
        self.places[column as usize]
    }

    /// The places that have a meaning.
    pub(super) fn used(&self) -> impl Iterator<Item = usize> + '_ {
        self.places.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_in_any_order_and_case() {
        for (number, (column, _)) in NAMES.iter().enumerate() {
            assert_eq!(*column as usize, number);
        }
        let columns = Columns::find(["Size", "x", " URL", "timestamp"].into_iter())
            .expect("all that is needed");
        let places =
            [Column::Time, Column::Url, Column::Bytes, Column::Client].map(|c| columns.place(c));
        assert_eq!(places, [Some(3), Some(2), Some(0), None]);
        assert_eq!(columns.used().collect::<Vec<_>>(), [3, 2, 0]);
    }

    #[test]
    fn a_missing_column_is_named() {
        let error = Columns::find(["time", "bytes"].into_iter()).expect_err("no URL");
        assert!(matches!(error, ReadError::NoColumn("url")), "{error}");
    }
}
