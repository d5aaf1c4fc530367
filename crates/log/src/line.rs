//! A line of the printer: the time, the level, the module as a filter names it, and the event.

use crate::filter::CRATES;
use std::fmt;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

pub(crate) struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let (level, path) = (event.metadata().level(), event.metadata().target());
        SystemTime.format_time(&mut line)?;
        write!(line, " {level:>5} {}: ", path.strip_prefix(CRATES).unwrap_or(path))?;
        context.format_fields(line.by_ref(), event)?;
        writeln!(line)
    }
}
