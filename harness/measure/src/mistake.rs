pub use collo_store::text::quoted;
pub use collo_store::{Diagnostic as Mistake, Diagnostics as Mistakes, Source};
