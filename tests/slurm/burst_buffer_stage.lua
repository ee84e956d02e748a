-- A stage for burst_buffer.lua without Slurm: arg is the script under test, the version of Slurm, the function to call,
-- and its arguments ("nil" is nil, numbers are numbers). Prints what it returns and what it logs, a line each.
local path, version, name = arg[1], arg[2], arg[3]
slurm = { SUCCESS = 0, ERROR = -1 }
if version == "24.05" then
	slurm.SLURM_BB_BUSY = "BUSY"
end
function slurm.log_info(...)
	print("log", string.format(...))
end
dofile(path)
local given = {}
for place = 4, #arg do
	local text = arg[place]
	given[place - 3] = text ~= "nil" and (tonumber(text) or text) or nil
end
local unpack = table.unpack or unpack
print("returned", _G[name](unpack(given, 1, #arg - 3)))
