# Run as a script: writes ${out} with one { "name", "text" } row per pipelines/*.yaml, so that the
# shipped pipelines are found wherever the library lies.
file(GLOB files ${dir}/*.yaml)
set(rows "")
foreach(file ${files})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
  string(APPEND rows "{ \"${name}\",\n    \"${text}\" },\n")
endforeach()
file(WRITE ${out}.new "${rows}")
file(COPY_FILE ${out}.new ${out} ONLY_IF_DIFFERENT)
