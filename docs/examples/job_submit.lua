-- Slurm: the node of a job that says what it trains is chosen by `collo advise`.
--
-- A user submits with   sbatch --comment='collo:{"workload": "resnet50", "settings": {"batch_size": 64}}' job.sh
-- The administrator puts this file beside slurm.conf, sets JobSubmitPlugins=lua, and lets every node write its cards into CARDS, an array
-- as `collo help advising` has it, whose `node` is the node's name.
--
-- slurmctld waits for this script while it holds its locks: advice takes milliseconds, and `timeout` bounds it.

local PROJECT = os.getenv("COLLO_PROJECT") or "/srv/collo"
local CARDS = os.getenv("COLLO_CARDS") or "/run/collo/cards.json"
local COLLO = os.getenv("COLLO") or "collo"

local function read(path)
  local file = io.open(path, "r")
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  return text
end

local function advice(task)
  local cards = read(CARDS)
  if not cards then return nil, CARDS .. " cannot be read" end
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write('{"task": ' .. task .. ', "cards": ' .. cards .. "}")
  file:close()
  local pipe = io.popen("timeout 2 '" .. COLLO .. "' -C '" .. PROJECT .. "' advise '" .. path .. "' 2>&1")
  local answer = pipe:read("*a")
  pipe:close()
  os.remove(path)
  local decision = answer:match('"decision": "(%w+)"')
  if not decision then return nil, answer end
  return { decision = decision, why = answer:match('"why": "([^"]*)"'), node = answer:match('"node": "([^"]*)"') }
end

function slurm_job_submit(job, partitions, uid)
  local task = job.comment and job.comment:match("^collo:(%b{})$")
  if not task then return slurm.SUCCESS end
  local said, wrong = advice(task)
  if not said then
    slurm.log_user("collo advise: %s", wrong)
    return slurm.ERROR
  end
  job.admin_comment = "collo: " .. said.decision .. ", " .. (said.why or "")
  if said.decision == "place" and said.node then
    job.req_nodes = said.node
  elseif said.decision == "wait" then
    job.priority = 0 -- held, until `scontrol release` asks for it again
  elseif said.decision == "never" then
    slurm.log_user("collo advise: %s", said.why or "it fits no card")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
  return slurm.SUCCESS
end

return slurm.SUCCESS
