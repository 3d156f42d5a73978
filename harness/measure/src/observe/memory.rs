//! Messages that mean out of memory: the list that members read as well, `workloads/out_of_memory.jsonl`. Pure.
//!
//! To add a message: its line there, with an example and its source.

use std::sync::LazyLock;

use serde::Deserialize;

use collo_launch::protocol::Whose;

/// One text of the list.
#[derive(Debug, Deserialize)]
pub struct Words {
    /// Matched case-insensitively.
    text: String,
    pub whose: Whose,
    /// False for a symptom, which has other causes too: it counts only if little GPU memory is free at that moment, which the
    /// member itself can report.
    pub sure: bool,
}

static LIST: LazyLock<Vec<Words>> = LazyLock::new(|| {
    let mut list: Vec<Words> = include_str!("../../../../workloads/out_of_memory.jsonl")
        .lines()
        // A test reads every line.
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    list.iter_mut().for_each(|words| words.text.make_ascii_lowercase());
    list
});

/// The text of the list that a message contains: the first one.
pub fn said(message: &str) -> Option<&'static Words> {
    let message = message.to_ascii_lowercase();
    LIST.iter().find(|words| message.match_indices(&words.text).any(|(at, text)| words.is_meant(&message[at + text.len()..])))
}

impl Words {
    /// The name of an exception comes before its message, or alone: elsewhere it is only mentioned.
    fn is_meant(&self, behind: &str) -> bool {
        let is_name = self.text.ends_with("error") && !self.text.contains(' ');
        !is_name || behind.is_empty() || behind.starts_with(':')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_of_the_list_is_found_in_its_example_and_none_before_it() {
        #[derive(Deserialize)]
        struct Example {
            text: String,
            example: String,
            source: String,
        }
        let lines = include_str!("../../../../workloads/out_of_memory.jsonl").lines();
        let examples: Vec<Example> = lines.map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
        assert!(examples.len() > 20);
        for Example { text, example, source } in examples {
            assert_eq!(said(&example).map(|w| w.text.as_str()), Some(text.to_ascii_lowercase().as_str()), "{example}");
            assert!(!source.is_empty(), "{text} has a witness");
        }
    }

    #[test]
    fn out_of_memory_is_known_in_the_words_of_cublas_and_cudnn_too() {
        let whose = |message: &str| said(message).map(|w| (w.whose, w.sure));
        for sure in ["CUDA error: out of memory", "CUDA driver error: out of memory", "Triton Error [CUDA]: out of memory"] {
            assert_eq!(whose(sure), Some((Whose::Card, true)), "{sure}");
        }
        assert_eq!(whose("backend='inductor' raised: OutOfMemoryError: CUDA out of memory."), Some((Whose::Card, true)));
        let nvml = r#"NVML_SUCCESS == r INTERNAL ASSERT FAILED at "/pytorch/c10/cuda/CUDACachingAllocator.cpp":1154"#;
        assert_eq!(whose(nvml), Some((Whose::Card, true)));
        for symptom in [
            "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
            "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
            "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
            "FIND was unable to find an engine to execute this computation",
            "GET was unable to find an engine to execute this computation",
            "Unable to find a valid cuDNN algorithm to run convolution",
        ] {
            assert_eq!(whose(symptom), Some((Whose::Card, false)), "{symptom}");
        }
        assert_eq!(whose("MemoryError"), Some((Whose::Host, true)));
        assert_eq!(whose("ValueError: no MemoryError happened"), None);
        assert_eq!(whose("CUDA error: an illegal memory access was encountered"), None);
    }
}
