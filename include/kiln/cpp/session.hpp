/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions. Part of kiln.hpp, which includes it. */
#ifndef KILN_CPP_SESSION_HPP
#define KILN_CPP_SESSION_HPP

#include "cpp/item.hpp"
#include "cpp/model.hpp"

#include <vector>

namespace kiln
{

/** An output: its elements and its dims, until the next run of the session. */
template <typename T> class Output : public Span<const T>
{
  public:
    Output(const T *data, std::size_t size, const KilnTensorInfo &info)
        : Span<const T>(data, size), info_(info)
    {
    }
    Span<const std::int64_t> dims() const
    {
        return kiln::dims(info_);
    }
    const KilnTensorInfo &info() const noexcept
    {
        return info_;
    }

  private:
    KilnTensorInfo info_;
};

/** Runs a program. One thread at a time may use it. Inputs and outputs that are bound are borrowed:
 * containers must stay and keep their memory until other memory is bound. */
class Session
{
  public:
    explicit Session(const Program &program, const SessionOptions &options = {})
        : program_(program),
          session_(detail::call(kiln_session_new, program.get(),
                                static_cast<const KilnSessionOptions *>(&options)))
    {
    }

    /** Reads input @i from @elements, a container whose elements lie one after the other. */
    template <typename Range, typename T = detail::Stays<Range>>
    void bind_input(unsigned i, Range &&elements)
    {
        bind_input_of(DType<T>::value, i, std::data(elements), std::size(elements) * sizeof(T));
    }
    /** The same with the shape, for inputs whose model leaves dims open. */
    template <typename Range, typename T = detail::Stays<Range>>
    void bind_input(unsigned i, Range &&elements, const std::vector<std::int64_t> &dims)
    {
        expect_input(i, DType<T>::value);
        std::size_t expected = 1;
        for (std::int64_t dim : dims)
            expected *= dim > 0 ? static_cast<std::size_t>(dim) : 0;
        if (std::size(elements) != expected)
            throw Error(KILN_ERROR_SHAPE, "input " + std::to_string(i) + ": expected " +
                                              std::to_string(expected) + " elements, found " +
                                              std::to_string(std::size(elements)));
        detail::call(kiln_session_bind_input_shaped, get(), i,
                     static_cast<const void *>(std::data(elements)), static_cast<int>(dims.size()),
                     dims.data());
    }
    template <typename Range, typename T = detail::Stays<Range>>
    void bind_input(const std::string &name, Range &&elements)
    {
        bind_input(program_.find_input(name), std::forward<Range>(elements));
    }
    /** Bytes of an element type that C++ has no type for. */
    void bind_input_of(KilnDType dtype, unsigned i, const void *data, std::size_t bytes)
    {
        expect_input(i, dtype);
        detail::call(kiln_session_bind_input, get(), i, data, bytes);
    }
    /** A sequence, optional or map, which the session becomes an owner of. */
    void bind_input(unsigned i, const Item &item)
    {
        detail::call(kiln_session_bind_input_item, get(), i, item.get());
    }
    void bind_input(unsigned i, Item &item)
    {
        bind_input(i, static_cast<const Item &>(item));
    }
    void bind_input(unsigned i, Item &&item)
    {
        bind_input(i, static_cast<const Item &>(item));
    }
    /** Writes output @i to @elements. */
    template <typename Range, typename T = detail::Stays<Range>>
    void bind_output(unsigned i, Range &&elements)
    {
        detail::expect_dtype("output", i, program_.output(i).dtype, DType<T>::value);
        detail::call(kiln_session_bind_output, get(), i, static_cast<void *>(std::data(elements)),
                     std::size(elements) * sizeof(T));
    }

    void run()
    {
        detail::call(kiln_session_run, get());
    }

    template <typename T> Output<T> output(unsigned i = 0) const
    {
        KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
        const void *data = detail::call(kiln_session_output, get(), i, &info);
        detail::expect_dtype("output", i, info.dtype, DType<T>::value);
        return { static_cast<const T *>(data), static_cast<std::size_t>(info.bytes) / sizeof(T),
                 info };
    }
    template <typename T> Output<T> output(const std::string &name) const
    {
        return output<T>(program_.find_output(name));
    }
    /** A sequence, optional or map, which outlives the session. */
    Item output_item(unsigned i = 0) const
    {
        return Item(detail::call(kiln_session_output_item, get(), i));
    }

    /** From now on, input @input is output @output of the run before. */
    void carry(unsigned output, unsigned input)
    {
        detail::call(kiln_session_carry, get(), output, input);
    }
    void truncate(unsigned input, std::int64_t extent)
    {
        detail::call(kiln_session_truncate, get(), input, extent);
    }
    void reset()
    {
        kiln_session_reset(get());
    }
    Session clone() const
    {
        return Session(program_,
                       detail::call(kiln_session_clone, static_cast<const KilnSession *>(get())));
    }

    const Program &program() const noexcept
    {
        return program_;
    }
    KilnSession *get() const noexcept
    {
        return session_.get();
    }

  private:
    struct Free {
        void operator()(KilnSession *session) const
        {
            kiln_session_free(session);
        }
    };

    Session(const Program &program, KilnSession *session) : program_(program), session_(session)
    {
    }

    void expect_input(unsigned i, KilnDType dtype) const
    {
        detail::expect_dtype("input", i, program_.input(i).dtype, dtype);
    }

    Program program_;
    std::unique_ptr<KilnSession, Free> session_;
};

} // namespace kiln

#endif
