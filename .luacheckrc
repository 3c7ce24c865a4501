-- How luacheck reads the scripts: Redis runs Lua 5.1 with these names and no others.
std = {
  read_globals = {
    "KEYS", "ARGV", "redis", "cjson", "cmsgpack", "struct", "bit",
    "assert", "error", "ipairs", "next", "pairs", "pcall", "select", "tonumber", "tostring", "type", "unpack",
    "math", "string", "table",
  },
}
max_line_length = 120
ignore = {
  "211/arg", -- each script binds its arguments, as its header says, even where `now` is not read
  "241",     -- an included file comes whole: a script needn't use all it gives
}
