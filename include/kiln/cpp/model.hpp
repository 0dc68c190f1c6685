/* SPDX-License-Identifier: Apache-2.0 */
/* Models, pipelines and programs. Part of kiln.hpp, which includes it. */
#ifndef KILN_CPP_MODEL_HPP
#define KILN_CPP_MODEL_HPP

#include "cpp/base.hpp"

#include <vector>

namespace kiln
{

/** Options that begin with their defaults. Their fields are those of kiln.h. */
struct CompileOptions : KilnCompileOptions {
    CompileOptions() : KilnCompileOptions(KILN_COMPILE_OPTIONS_INIT)
    {
    }
};
struct ModelOptions : KilnModelOptions {
    ModelOptions() : KilnModelOptions(KILN_MODEL_OPTIONS_INIT)
    {
    }
};
struct LoadOptions : KilnLoadOptions {
    LoadOptions() : KilnLoadOptions(KILN_LOAD_OPTIONS_INIT)
    {
    }
};
struct SessionOptions : KilnSessionOptions {
    SessionOptions() : KilnSessionOptions(KILN_SESSION_OPTIONS_INIT)
    {
    }
};

class Model : public detail::Counted<KilnModel, kiln_model_ref, kiln_model_unref>
{
  public:
    using Counted::Counted;

    explicit Model(const std::string &path) : Counted(detail::call(kiln_model_load, path.c_str()))
    {
    }
    Model(const std::string &path, const ModelOptions &options)
        : Counted(detail::call(kiln_model_load_with, path.c_str(),
                               static_cast<const KilnModelOptions *>(&options)))
    {
    }
    /** From memory, which is copied. @name stands for the path in messages. */
    static Model from_bytes(const void *data, std::size_t size, const std::string &name)
    {
        const std::unique_ptr<GBytes, void (*)(GBytes *)> bytes(g_bytes_new(data, size),
                                                                g_bytes_unref);
        return Model(detail::call(kiln_model_load_bytes, bytes.get(), name.c_str()));
    }

    unsigned n_inputs() const
    {
        return kiln_model_n_inputs(get());
    }
    unsigned n_outputs() const
    {
        return kiln_model_n_outputs(get());
    }
    const KilnTensorInfo &input(unsigned i) const
    {
        return detail::expect_info(kiln_model_input(get(), i), "input", i);
    }
    const KilnTensorInfo &output(unsigned i) const
    {
        return detail::expect_info(kiln_model_output(get(), i), "output", i);
    }
    const KilnMetadata &metadata() const
    {
        return *kiln_model_metadata(get());
    }
};

class Pipeline : public detail::Counted<KilnPipeline, kiln_pipeline_ref, kiln_pipeline_unref>
{
  public:
    using Counted::Counted;

    /** An empty pipeline. */
    Pipeline() : Counted(kiln_pipeline_new())
    {
    }
    /** A pipeline that ships with Kiln, or a file. */
    explicit Pipeline(const std::string &name_or_path)
        : Counted(detail::call(kiln_pipeline_load, name_or_path.c_str()))
    {
    }
    /** The inline form: "dce,cse". */
    static Pipeline parse(const std::string &text)
    {
        return Pipeline(detail::call(kiln_pipeline_parse, text.c_str()));
    }
    Pipeline &add(const std::string &pass)
    {
        detail::call(kiln_pipeline_add, get(), pass.c_str());
        return *this;
    }
    Pipeline &load_plugin(const std::string &path)
    {
        detail::call(kiln_pipeline_load_plugin, get(), path.c_str());
        return *this;
    }
    std::string to_string() const
    {
        const std::unique_ptr<char, void (*)(void *)> text(kiln_pipeline_to_string(get()), g_free);
        return text.get();
    }
};

class Program : public detail::Counted<KilnProgram, kiln_program_ref, kiln_program_unref>
{
  public:
    using Counted::Counted;

    explicit Program(const Model &model, const CompileOptions &options = {})
        : Counted(detail::call(kiln_program_compile, model.get(),
                               static_cast<const KilnCompileOptions *>(&options)))
    {
    }
    /** A program that save() or `kiln compile` wrote. */
    static Program load(const std::string &path, const LoadOptions &options = {})
    {
        return Program(detail::call(kiln_program_load, path.c_str(),
                                    static_cast<const KilnLoadOptions *>(&options)));
    }
    void save(const std::string &path) const
    {
        detail::call(kiln_program_save, get(), path.c_str());
    }
    /** Does the work of the first run with these shapes ahead of it. */
    void prepare(const std::vector<KilnShape> &shapes) const
    {
        detail::call(kiln_program_prepare, get(), shapes.data(),
                     static_cast<unsigned>(shapes.size()));
    }
    KilnMemoryReport memory() const
    {
        KilnMemoryReport report = KILN_MEMORY_REPORT_INIT;
        detail::call(kiln_program_memory, static_cast<const KilnProgram *>(get()), &report);
        return report;
    }

    unsigned n_inputs() const
    {
        return kiln_program_n_inputs(get());
    }
    unsigned n_outputs() const
    {
        return kiln_program_n_outputs(get());
    }
    const KilnTensorInfo &input(unsigned i) const
    {
        return detail::expect_info(kiln_program_input(get(), i), "input", i);
    }
    const KilnTensorInfo &output(unsigned i) const
    {
        return detail::expect_info(kiln_program_output(get(), i), "output", i);
    }
    /** The number of the input of that name. */
    unsigned find_input(const std::string &name) const
    {
        return found(kiln_program_find_input(get(), name.c_str()), "input", name);
    }
    unsigned find_output(const std::string &name) const
    {
        return found(kiln_program_find_output(get(), name.c_str()), "output", name);
    }

  private:
    static unsigned found(int i, const char *what, const std::string &name)
    {
        if (i < 0)
            throw Error(KILN_ERROR_USAGE, "there is no " + std::string(what) + " '" + name + "'");
        return static_cast<unsigned>(i);
    }
};

} // namespace kiln

#endif
