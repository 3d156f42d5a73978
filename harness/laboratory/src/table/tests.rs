use std::path::Path;

use super::*;
use crate::measurements::Trained;

fn workloads() -> Workloads {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    Workloads::load(&folder).expect("readable")
}

fn read(text: &str) -> Result<Measurements, String> {
    let mut all = Measurements::default();
    all.sources.push("mine.csv".into());
    super::read(&Source::file("mine.csv", text), &workloads(), &mut all).map_err(|e| e.to_string())?;
    all.shrinking();
    Ok(all)
}

fn names(all: &Measurements) -> Vec<&str> {
    all.measured_by.iter().map(|by| by.name.as_str()).collect()
}

#[test]
fn a_table_names_workloads_with_settings_and_models_by_name() {
    let text = "workload,settings,model,input,batch_size,memory_bytes,measured_by\n\
                tiny,,,,,700000000,process a100\n\
                tiny,images=64,,,64,800000000,process a100\n\
                ,,timm:resnet18,3x32x32,32,826277888,nvidia-smi a100\n\
                ,,timm:resnet18,3x32x32,64,834666496,nvidia-smi a100\n";
    let all = read(text).expect("right");
    let named: Vec<(&str, &str)> = all.subjects.iter().map(|s| (s.name(), s.family.as_str())).collect();
    assert_eq!(named, [("tiny", "tiny"), ("tiny", "tiny"), ("timm:resnet18", "resnet")]);
    let batches: Vec<(usize, u64)> = all.rows.iter().map(|r| (r.subject, r.batch_size)).collect();
    assert_eq!(batches, [(0, 32), (1, 64), (2, 32), (2, 64)]);
    assert_eq!(names(&all), ["process a100", "nvidia-smi a100"]);
    let only = all.of("process a100").expect("there");
    assert_eq!(only.rows.len(), 2);
    assert!(only.of("nobody").expect_err("none").to_string().contains("`process a100`, `nvidia-smi a100`"));
}

#[test]
fn a_missing_column_is_named_with_the_one_that_was_meant() {
    let said = read("workload,memory_byte,measured_by\ntiny,700000000,x\n").expect_err("it lacks one");
    assert!(said.contains("mine.csv has no column `memory_bytes`"), "{said}");
    assert!(said.contains("did you mean `memory_bytes`?"), "{said}");
    let said = read("memory_bytes,measured_by\n").expect_err("nothing is named");
    assert!(said.contains("no column `workload` (or `model`)"), "{said}");
    let said = read("workload,memory_bytes,measured_by,measured_by\n").expect_err("which one");
    assert!(said.contains("`measured_by` twice"), "{said}");
    let all = read("workload,memory_bytes,measured_by,staet\ntiny,700000000,x,out-of-memory\n").expect("read");
    assert_eq!(all.warnings, ["the column `staet` is not read; did you mean `state`?"]);
}

#[test]
fn a_table_with_semicolons_or_tabs_is_one_and_its_mistakes_are_at_their_place() {
    let text = "workload,settings,batch_size,memory_mib,measured_by\ntiny,images=64,32,668,smi\ntiny,images=64,64,x,smi\n";
    let right = text.replace(",x,", ",700,");
    for separator in [";", "\t"] {
        let all = read(&right.replace(',', separator)).expect("as a spreadsheet writes it");
        let numbers: Vec<(u64, f64)> = all.rows.iter().map(|row| (row.batch_size, row.reading)).collect();
        assert_eq!(numbers, [(32, 668.0 * 1_048_576.0), (64, 700.0 * 1_048_576.0)]);
        let wrong = read(&text.replace(',', separator)).expect_err("no number");
        assert!(wrong.contains("`memory_mib` is `x`") && wrong.contains("mine.csv:3:"), "{wrong}");
    }
}

#[test]
fn every_mistake_is_shown_at_its_line() {
    let text = "model,input,batch_size,memory_bytes,measured_by\n\
                timm:resnet18,3x32x32,32,788,x\n\
                timm:resnet18,3x32x32,0,826277888,x\n\
                timm:resnet18,,32,826277888,x\n\
                resnet18,3x32x32,32,826277888,x\n\
                timm:resnet18,3x32x32,,826277888,x\n\
                timm:resnet18,3x32x32,32,NaN,x\n\
                timm:resnet18,3x32x32,32,826277888,\n";
    insta::assert_snapshot!(read(text).expect_err("all wrong"));
}

#[test]
fn memory_is_in_bytes_or_in_mib() {
    let bytes = |head: &str, fields: &str| {
        let all = read(&format!("workload,{head},measured_by\ntiny,{fields},x\n"))?;
        Ok::<f64, String>(all.rows[0].reading)
    };
    assert_eq!(bytes("memory_mib", "6684"), Ok(7_008_681_984.0));
    assert_eq!(bytes("memory_bytes", "7008681984"), Ok(7_008_681_984.0));
    assert_eq!(bytes("memory_bytes,memory_mib", ",6684"), Ok(7_008_681_984.0), "each row has one of them");
    for (head, fields, wrong) in [
        ("memory_bytes", "6684", "`memory_bytes` is `6684`, less than any training needs"),
        ("memory_mib", "7008681984", "`memory_mib` is `7008681984`, more than any device has"),
        ("memory_mib", "-1", "`memory_mib` is `-1`, not a number above 0"),
        ("memory_mib", "", "the memory is absent"),
        ("memory_bytes,memory_mib", "7008681984,6684", "the row has its memory in `memory_bytes` and in `memory_mib`"),
    ] {
        let refused = bytes(head, fields).expect_err(wrong);
        assert!(refused.contains(wrong), "{refused}");
    }
}

#[test]
fn a_utilisation_as_a_share_in_a_column_of_percentages_is_no_utilisation() {
    let profile = |utilisation: &str| {
        let mut all = Measurements::<Profile>::default();
        all.sources.push("mine.csv".into());
        let text = format!("workload,sm_active_ratio,gpu_utilisation_percent\ntiny,0.226,{utilisation}\n");
        super::read(&Source::file("mine.csv", text), &workloads(), &mut all).map_err(|e| e.to_string())?;
        Ok::<_, String>(all.rows[0].reading.measured.gpu_utilisation_percent)
    };
    assert_eq!(profile("37.2"), Ok(Some(37.2)));
    let refused = profile("0.372").expect_err("a share");
    assert!(refused.contains("the GPU utilisation is 0.372 %, and SMs were active for 22.6 % of the time"), "{refused}");
}

#[test]
fn a_model_by_name_has_the_shape_of_its_library_unless_one_is_given_and_its_words_are_checked() {
    let model = |fields: &str| {
        let head = "model,input,optimizer,precision,batch_size,memory_mib,measured_by";
        let all = read(&format!("{head}\ntimm:resnet50,{fields},32,6684,x\n"))?;
        match &all.subjects[0].what {
            Trained::Model(model) => Ok(model.clone()),
            Trained::Member(_) => Err("a member".to_string()),
        }
    };
    assert_eq!(model(",,").expect("right").input, None);
    let given = model("3x288x288,sgd,bf16").expect("right");
    assert_eq!((given.input, given.optimizer.as_str(), given.precision.as_str()), (Some(vec![3, 288, 288]), "sgd", "bf16"));
    for (fields, wrong) in [
        (",SGD,", "`optimizer` is `SGD`"),
        (",,amp", "`precision` is `amp`"),
        ("3x0x224,,", "`input` is `3x0x224`, not the shape of an item"),
    ] {
        let refused = model(fields).expect_err(wrong);
        assert!(refused.contains(wrong), "{refused}");
    }
    assert!(model(",SGD,").expect_err("capitals").contains("one of `adam`, `adamw`, `sgd`"));
}

#[test]
fn a_table_is_marked_as_one_and_a_data_set_is_collos_own() {
    let of = |all: &Measurements| all.measured_by.iter().map(|who| who.is_table).collect::<Vec<_>>();
    assert_eq!(of(&read("workload,memory_mib,measured_by\ntiny,6684,x\n").expect("right")), [true]);
    let row = "x,1,NVIDIA A100-SXM4-40GB,gpu,ampere,570.1,2.14.1,false,tiny solo,solo,1,1,completed,valid,tiny,32,{},,1.5,7000000000,gpu_memory";
    assert_eq!(of(&dataset(&[row])), [false]);
}

#[test]
fn what_is_wrong_in_every_row_is_shown_of_ten() {
    let rows: String = (0..200_000).map(|_| "tinny,700000000,x\n").collect();
    let said = read(&format!("workload,memory_bytes,measured_by\n{rows}")).expect_err("no such workload");
    assert_eq!(said.matches("did you mean `tiny`?").count(), 10, "{said}");
    assert!(said.contains("more are not shown"), "{said}");
}

#[test]
fn rows_without_memory_enough_or_within_a_search_are_counted_and_not_compared() {
    let text = "workload,batch_size,memory_bytes,measured_by,state\n\
                tiny,32,700000000,x,ok\ntiny,64,41000000000,x,out-of-memory\ntiny,128,9000000000,x,search-spike\n";
    let all = read(text).expect("right");
    assert_eq!((all.rows.len(), all.left_out.values().sum::<usize>()), (1, 2));
    let said = read(&text.replace("search-spike", "spike")).expect_err("unknown");
    assert!(said.contains("`state` is `spike`, not `ok`, `out-of-memory` or `search-spike`"), "{said}");
    let nothing = read("workload,memory_bytes,measured_by,state\ntiny,700000000,x,out-of-memory\n").expect("read");
    assert_eq!((nothing.rows.len(), nothing.measurers().len()), (0, 0));
}

#[test]
fn memory_that_shrinks_with_the_batch_is_doubted_aloud() {
    let head = "workload,batch_size,memory_bytes,measured_by\n";
    let all = read(&format!("{head}tiny,32,39955000000,x\ntiny,128,31947000000,x\n")).expect("read");
    assert!(all.warnings[0].starts_with("of a training (tiny) a larger batch took less memory"), "{:?}", all.warnings);
    let noise = read(&format!("{head}tiny,32,700000000,x\ntiny,64,699000000,x\ntiny,16,1,x\n").replace("tiny,16,1,x\n", ""))
        .expect("read");
    assert_eq!(noise.warnings, [] as [String; 0]);
}

#[test]
fn a_million_rows_are_read_into_few_subjects() {
    let mut text = String::from("workload,batch_size,memory_bytes,measured_by\n");
    for i in 0..1_000_000 {
        text += &format!("tiny,{},{},x\n", i % 512 + 1, 700_000_000 + i);
    }
    let all = read(&text).expect("right");
    assert_eq!((all.rows.len(), all.subjects.len()), (1_000_000, 1));
}

#[test]
fn the_published_jobs_are_ten_models_with_two_measurements_each() {
    let all = Measurements::published();
    assert_eq!((all.subjects.len(), all.rows.len()), (10, 60));
    assert_eq!(names(&all), ["carma", "thesis"]);
}

/// A data set as it is exported, of its columns those that are read and one that is not.
const DATASET: &str = "experiment,campaign,device,device_kind,device_architecture,driver,torch,simulated,cell,sharing,degree,repetition,\
outcome,validity,workload,batch_size,settings,serving_rate_per_s,epoch_time_s,memory_bytes,memory_kind\n";

fn dataset(rows: &[&str]) -> Measurements {
    read(&format!("{DATASET}{}\n", rows.join("\n"))).expect("right")
}

#[test]
fn a_data_set_is_read_as_it_is_exported() {
    let a100 = "x,1,NVIDIA A100-SXM4-40GB,gpu,ampere,570.1,2.14.1,false";
    let all = dataset(&[
        &format!("{a100},tiny solo,solo,1,1,completed,valid,tiny,32,\"{{\"\"images\"\":64}}\",,1.5,700000000,gpu_memory"),
        &format!("{a100},tiny×2 naive,naive,2,1,completed,valid,tiny,32,\"{{\"\"images\"\":64}}\",,1.5,700000000,gpu_memory"),
        &format!("{a100},tiny×2 naive,naive,2,1,completed,valid,tiny,32,\"{{\"\"images\"\":64}}\",,1.5,710000000,gpu_memory"),
        &format!("{a100},tiny×2 naive,naive,2,2,completed,valid,tiny,32,\"{{\"\"images\"\":64}}\",,1.5,720000000,gpu_memory"),
        &format!("{a100},tiny×2 mps,mps,2,1,completed,valid,tiny,32,{{}},,1.5,500000000,gpu_memory"),
    ]);
    assert_eq!(all.warnings, [] as [String; 0], "columns for others are no mistake");
    assert_eq!(
        names(&all),
        ["NVIDIA A100-SXM4-40GB, memory by process", "NVIDIA A100-SXM4-40GB, memory by process of MPS clients"]
    );
    let of_first: Vec<f64> = all.rows.iter().filter(|row| row.by == 0).map(|row| row.reading).collect();
    assert_eq!(of_first, [7e8, 7.05e8, 7.2e8], "members alike in one run are one measurement");
    let [own, clients] = &all.measured_by[..] else { panic!("two") };
    assert!(own.while_training && !own.simulated && !own.shares && clients.shares);
    let conditions = &own.conditions;
    assert_eq!(conditions.gpu.as_deref(), Some("NVIDIA A100-SXM4-40GB"));
    assert_eq!((conditions.driver.as_deref(), conditions.torch.as_deref()), (Some("570.1"), Some("2.14.1")));
    assert_eq!(conditions.sharing, None, "it is not one");
}

#[test]
fn members_of_a_data_set_that_are_no_measurement_are_counted_by_their_reason() {
    let cpu = "x,1,cpu,cpu,,,2.14.1,false,tiny solo,solo,1,1";
    let all = dataset(&[
        &format!("{cpu},completed,valid,tiny,32,{{}},,1.5,700000000,pss"),
        &format!("{cpu},out_of_memory,discarded,tiny,64,{{}},,,,"),
        &format!("{cpu},crashed,discarded,tiny,64,{{}},,,,"),
        &format!("{cpu},completed,discarded,tiny,64,{{}},,,,"),
        &format!("{cpu},completed,valid,tiny,64,{{}},,1.5,,"),
        &format!("{cpu},completed,valid,tiny,64,{{}},20,1.5,700000000,pss"),
    ]);
    assert_eq!(all.rows.len(), 1);
    let reasons: Vec<(&str, usize)> = all.left_out.iter().map(|(reason, rows)| (*reason, *rows)).collect();
    assert_eq!(reasons.len(), 5, "{reasons:?}");
    assert!(all.measured_by[0].is_cpu());
    assert_eq!(all.measured_by[0].conditions.gpu, None);
}

#[test]
fn a_simulated_device_is_one_by_its_record_whatever_it_is_called() {
    let row = |simulated: &str, name: &str| {
        format!("x,1,{name},gpu,ampere,,,{simulated},tiny solo,solo,1,1,completed,valid,tiny,32,{{}},,1.5,700000000,gpu_memory")
    };
    let all = dataset(&[&row("true", "NVIDIA A30"), &row("false", "NVIDIA A30")]);
    assert_eq!(names(&all), ["simulated NVIDIA A30, memory by process", "NVIDIA A30, memory by process"]);
    assert_eq!([all.measured_by[0].simulated, all.measured_by[1].simulated], [true, false]);
    let said = read("workload,memory_bytes,measured_by,simulated\ntiny,700000000,x,maybe\n").expect_err("which");
    assert!(said.contains("`simulated` is `maybe`, not `true` or `false`"), "{said}");
    let table = read("workload,memory_bytes,measured_by,simulated\ntiny,700000000,x,true\n").expect("right");
    assert!(table.measured_by[0].simulated);
}
