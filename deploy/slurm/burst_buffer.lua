-- Warm a job's data before its nodes are allocated: Slurm's burst_buffer/lua calls this file, which lies beside
-- slurm.conf, with ask.sh and fsxwarm.conf in the folder fsxwarm beside it.
--
-- A job with #FSXWARM lines stays PENDING (BurstBufferStageIn), and its nodes free, until its data is there. Nothing is
-- read from the lines here: the script goes to the daemon as it is. Where no daemon can be reached, the job runs
-- without; where the data cannot be had, it is held with the reason.
--
-- Slurm 22.05 calls slurm_bb_data_in(job_id, script) in a thread of its own and waits for its end; from 23.02 on it says
-- whose job it is; from 24.05 on slurm_bb_test_data_in is asked instead, again and again.

local folder = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/fsxwarm"
local POLL = 50 -- seconds that the daemon may take for one answer
local PATIENCE = 120 -- seconds in which a daemon that cannot be reached may come back
local PAUSE = 2 -- seconds between two such tries

local function quote(text)
	return "'" .. tostring(text):gsub("'", "'\\''") .. "'"
end

-- Run a command; its first line and whether it ended well. What it prints last is its exit status.
local function run(command)
	local pipe = io.popen("{ " .. command .. "; } 2>&1; printf '\\n%s' $?", "r")
	if not pipe then
		return "the controller cannot start processes", 2
	end
	local out = pipe:read("*a")
	pipe:close()
	local line, status = out:match("^(.-)\n.*\n?(%d+)$")
	return line or out, tonumber(status) or 2
end

-- Whose job it is. Slurm before 23.02 does not say.
local function owner(job_id, uid)
	if uid then
		return tostring(math.floor(uid))
	end
	local line = run("scontrol --oneliner show job " .. quote(job_id))
	return line:match("UserId=[^(%s]*%((%d+)%)")
end

local function ask(call, job_id, uid, script, ...)
	local words = { quote(folder .. "/ask.sh"), call, job_id, uid, "script" }
	for _, word in ipairs({ ... }) do
		words[#words + 1] = quote(word)
	end
	return run(table.concat(words, " ") .. " < " .. quote(script))
end

local function say(job_id, message)
	slurm.log_info("fsxwarm: job %s: %s", tostring(job_id), message)
end

-- Ask how a job's data stands, for `wait` seconds: what to tell Slurm once that is known, nil until then; the daemon's
-- job; whether the daemon was reached.
local function stand(job_id, uid, script, wait, known)
	local line, status = ask("begin", job_id, uid, script, wait, known)
	if status == 2 then
		return nil, known, false, line
	end
	if status ~= 0 then
		return { slurm.ERROR, "fsxwarm: " .. line }, known, true, line
	end
	local state, job, message = line:match("^(%S+) (%S+) (.*)$")
	if state == "failed" then
		return { slurm.ERROR, "fsxwarm: " .. message }, known, true, message
	elseif state == "warming" then
		return nil, job, true, message
	end
	return { slurm.SUCCESS, "" }, job, true, message or line
end

-- Ask until the answer is known, or, if `once` is set, until there is any; only a daemon that stays away is not waited for.
local function stage_in(job_id, uid, script, wait, once)
	local known, away = "", 0
	while uid do
		local result, job, reached, message = stand(job_id, uid, script, wait, known)
		known = job
		if result then
			say(job_id, message)
			return result[1], result[2]
		elseif reached and once then
			return slurm.SUCCESS, slurm.SLURM_BB_BUSY
		elseif reached then
			away = 0
		elseif away >= PATIENCE then
			say(job_id, "runs as it is: " .. message)
			return slurm.SUCCESS, ""
		else
			away = away + PAUSE
			os.execute("sleep " .. PAUSE)
		end
	end
	say(job_id, "runs as it is: nobody knows whose job it is")
	return slurm.SUCCESS, ""
end

local function finish(job_id, uid, script, ran)
	uid = owner(job_id, uid)
	if uid then
		local message = ask("end", job_id, uid, script, ran)
		say(job_id, message)
	end
	return slurm.SUCCESS, ""
end

-- ---- What Slurm calls. It is called with locks held, and answers at once: -----------------------------------------

function slurm_bb_job_process(job_script, uid, gid, job_info)
	return slurm.SUCCESS, ""
end

function slurm_bb_pools()
	return slurm.SUCCESS
end

function slurm_bb_paths(job_id, job_script, path_file, uid, gid, job_info)
	return slurm.SUCCESS, ""
end

-- ---- These have a thread or process of their own: ------------------------------------------------------------------

function slurm_bb_setup(job_id, uid, gid, pool, bb_size, job_script, job_info)
	return slurm.SUCCESS, ""
end

function slurm_bb_data_in(job_id, job_script, uid, gid, job_info)
	if slurm.SLURM_BB_BUSY then -- from 24.05 on slurm_bb_test_data_in is asked next
		return slurm.SUCCESS, ""
	end
	return stage_in(job_id, owner(job_id, uid), job_script, POLL, false)
end

function slurm_bb_test_data_in(job_id, job_script, uid, gid, job_info)
	return stage_in(job_id, owner(job_id, uid), job_script, 0, true)
end

function slurm_bb_real_size(job_id, uid, gid, job_info)
	return slurm.SUCCESS, ""
end

function slurm_bb_pre_run(job_id, job_script, uid, gid, job_info)
	return slurm.SUCCESS, ""
end

function slurm_bb_post_run(job_id, job_script, uid, gid, job_info)
	return slurm.SUCCESS, ""
end

function slurm_bb_data_out(job_id, job_script, uid, gid, job_info)
	return finish(job_id, uid, job_script, true)
end

function slurm_bb_test_data_out(job_id, job_script, uid, gid, job_info)
	return slurm.SUCCESS, ""
end

function slurm_bb_job_teardown(job_id, job_script, hurry, uid, gid)
	return finish(job_id, uid, job_script, false)
end

function slurm_bb_get_status(uid, gid, ...)
	return slurm.SUCCESS, "fsxwarm: see `fsxwarm jobs`\n"
end
