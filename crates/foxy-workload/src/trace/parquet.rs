//! Reads Apache Parquet with Snappy, gzip or LZ4. Decodes the columns that a trace needs, row by
//! row. Reads the whole file into memory, because the description of its columns is at its end.

use super::Builder;
use super::csv::{Column, Columns};
use super::report::{ReadError, ReadReport, is_damage};
use super::skip::{self, Answer, Entry, Skip};
use foxy_base::log_time;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use parquet::schema::types::Type;
use std::borrow::Cow;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(super) fn read(
    mut input: impl Read,
    builder: &mut Builder,
    report: &mut ReadReport,
    progress: &mut dyn FnMut(u64),
) -> Result<(), ReadError> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).map_err(|error| {
        let damage = is_damage(&error, report.packed);
        if damage { ReadError::NotParquet(error.to_string()) } else { ReadError::Io(error) }
    })?;
    let unusable = |error: ParquetError| ReadError::NotParquet(error.to_string());
    let file =
        contained(|| SerializedFileReader::new(bytes::Bytes::from(bytes))).map_err(unusable)?;
    let schema = file.metadata().file_metadata().schema().clone();
    let columns = Columns::find(schema.get_fields().iter().map(|field| field.name()))?;
    let mut used: Vec<usize> = columns.used().collect();
    used.sort_unstable();
    check_packing(&file, &used)?;
    let fields = used.iter().map(|&place| schema.get_fields()[place].clone()).collect();
    let wanted =
        Type::group_type_builder(schema.name()).with_fields(fields).build().map_err(unusable)?;
    let place = |column| columns.place(column).and_then(|place| used.binary_search(&place).ok());
    let mut rows = contained(|| file.get_row_iter(Some(wanted))).map_err(unusable)?;
    loop {
        match contained(|| rows.next().transpose()) {
            Ok(None) => break,
            Ok(Some(row)) => {
                let outcome = add(&row, place, builder);
                report.count(outcome, || row.to_string());
            }
            Err(error) => {
                report.count(Err(Skip::Damaged), || error.to_string());
                break;
            }
        }
        progress(report.lines);
    }
    Ok(())
}

/// Returns an error if a column that the trace needs has an unsupported compression.
fn check_packing(file: &impl FileReader, used: &[usize]) -> Result<(), ReadError> {
    let columns = file.metadata().row_groups().iter().flat_map(|group| group.columns());
    let fields = file.metadata().file_metadata().schema().get_fields();
    let is_used = |name: &str| used.iter().any(|&place| fields[place].name() == name);
    for column in columns
        .filter(|column| column.column_path().parts().first().is_some_and(|name| is_used(name)))
    {
        let packing = column.compression();
        match packing {
            Compression::UNCOMPRESSED
            | Compression::SNAPPY
            | Compression::GZIP(_)
            | Compression::LZ4
            | Compression::LZ4_RAW => {}
            Compression::LZO | Compression::BROTLI(_) | Compression::ZSTD(_) => {
                return Err(ReadError::NotParquet(format!(
                    "the file is compressed with {packing}; write it with Snappy, gzip, LZ4 or no \
                     compression"
                )));
            }
        }
    }
    Ok(())
}

/// Runs a step of the decoder, and turns a panic into an error. The decoder panics on some damaged
/// files. After an error, the caller must not use the decoder again.
fn contained<T>(step: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|_| {
        Err(ParquetError::General("the parts of the file contradict each other".into()))
    })
}

fn add(
    row: &Row,
    place: impl Fn(Column) -> Option<usize>,
    builder: &mut Builder,
) -> Result<(), Skip> {
    let field = |column| {
        place(column).and_then(|place| row.get_column_iter().nth(place)).map(|(_, field)| field)
    };
    let words = |column| field(column).map(text);
    let time = field(Column::Time).and_then(time).ok_or(Skip::BadTime)?;
    let url = words(Column::Url).unwrap_or_default();
    let url = skip::url(&url)?;
    let size = words(Column::Bytes).unwrap_or_default();
    let client = words(Column::Client).unwrap_or_default();
    let answer = match (words(Column::Method), words(Column::Status)) {
        (None, None) => Answer::Whole(skip::bytes(&size)?),
        (method, status) => {
            let (method, status) = (method.unwrap_or("GET".into()), status.unwrap_or("200".into()));
            skip::answer(&method, &status, &size)?
        }
    };
    builder.add(Entry { time, client: &client, url, answer })
}

/// Returns the text of a field. A null or nested value gives an empty text.
fn text(field: &Field) -> Cow<'_, str> {
    match field {
        Field::Str(text) => Cow::Borrowed(text),
        Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()),
        Field::Null | Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => {
            Cow::Borrowed("")
        }
        Field::Double(value) => Cow::Owned(value.to_string()),
        number => Cow::Owned(number.to_string()),
    }
}

/// Returns the time of a field. A timestamp has its own unit; [`log_time::by_magnitude`] guesses
/// the unit of a number.
fn time(field: &Field) -> Option<i64> {
    match field {
        Field::TimestampMicros(micros) => Some(*micros),
        Field::TimestampMillis(millis) => millis.checked_mul(1000),
        Field::Long(number) => log_time::by_magnitude(*number),
        Field::ULong(number) => i64::try_from(*number).ok().and_then(log_time::by_magnitude),
        Field::Int(number) => log_time::by_magnitude(i64::from(*number)),
        Field::UInt(number) => log_time::by_magnitude(i64::from(*number)),
        Field::Double(seconds) => log_time::from_seconds(*seconds),
        Field::Float(seconds) => log_time::from_seconds(f64::from(*seconds)),
        Field::Str(text) => log_time::parse(text),
        _ => None,
    }
}
