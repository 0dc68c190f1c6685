# Run as a script: writes the file ${in} as one C string literal to ${out}.
file(READ ${in} text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n\"" text "${text}")
file(WRITE ${out}.new "\"${text}\"\n")
file(COPY_FILE ${out}.new ${out} ONLY_IF_DIFFERENT)
