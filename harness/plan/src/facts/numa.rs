//! Where the memory of members is to be.

collo_text::words! {
    /// Where members allocate their memory.
    pub enum NumaMemory {
        /// The system decides.
        #[default]
        System = "system",
        /// On the nodes of the member's cores, and nowhere else.
        Local = "local",
    }
}
