//! Predictors, and descriptions of what is trained.

use std::sync::LazyLock;

use collo_plan::predictors::SHIPPED;
use collo_predict::{AnyLaw, AnyPredictor, Basis, Description, MemoryPredictor, Peer, PredictorFile, TargetDevice};
use collo_text::Source;

use crate::Accepted;
use crate::given::{shown, text};
use crate::project::ROOT;

static DESCRIBED: LazyLock<Option<Description>> = LazyLock::new(|| {
    let file = ROOT.join("harness/predict/tests/descriptions/resnet18.json");
    Description::read(&Source::file("resnet18.json", std::fs::read_to_string(file).ok()?)).ok()
});
static MEMORY: LazyLock<Option<MemoryPredictor>> = LazyLock::new(|| {
    let file = ROOT.join("predictors").join(format!("{SHIPPED}.json"));
    PredictorFile::read(&Source::file(SHIPPED, std::fs::read_to_string(file).ok()?)).ok()
});

pub fn predictor(bytes: &[u8]) -> Accepted {
    let source = text(bytes)?;
    let predictor = shown(AnyPredictor::read_any(&source))?;
    shown(predictor.may_serve_gpu(false));
    predictor.serves(TargetDevice::Cpu, true);
    // What is written of it is read again as it was.
    let written = predictor.to_text();
    let again = AnyPredictor::read_any(&Source::file("written", written)).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(again, predictor);
    if let (AnyLaw::Memory(_), Some(description)) = (&predictor.law, &*DESCRIBED)
        && let Some(memory) = shown(PredictorFile::read(&source))
    {
        predicted(&memory, description);
    }
    Some(())
}

fn predicted(predictor: &MemoryPredictor, description: &Description) {
    for (batch, basis) in [(1, Basis::Reserved), (32, Basis::CacheEmptied), (4096, Basis::Allocated), (u64::MAX, Basis::Uncached)]
    {
        shown(predictor.predict(description, batch, basis));
    }
}

pub fn description(bytes: &[u8]) -> Accepted {
    let description = shown(Description::read(&text(bytes)?))?;
    MEMORY.iter().for_each(|predictor| predicted(predictor, &description));
    for peer in Peer::ALL {
        peer.estimate_bytes(&description, 32);
    }
    Some(())
}
