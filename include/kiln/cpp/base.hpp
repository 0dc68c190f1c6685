/* SPDX-License-Identifier: Apache-2.0 */
/* Errors, spans and element types. Part of kiln.hpp, which includes it. */
#ifndef KILN_CPP_BASE_HPP
#define KILN_CPP_BASE_HPP

#include "kiln.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace kiln
{

/** A failure, with the code of kiln.h. */
class Error : public std::runtime_error
{
  public:
    Error(KilnError code, const std::string &message) : std::runtime_error(message), code_(code)
    {
    }
    KilnError code() const noexcept
    {
        return code_;
    }

  private:
    KilnError code_;
};

/** Elements that lie one after the other and belong to somebody else. */
template <typename T> class Span
{
  public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;

    constexpr Span() noexcept = default;
    constexpr Span(T *data, std::size_t size) noexcept : data_(data), size_(size)
    {
    }
    constexpr T *data() const noexcept
    {
        return data_;
    }
    constexpr std::size_t size() const noexcept
    {
        return size_;
    }
    constexpr bool empty() const noexcept
    {
        return size_ == 0;
    }
    constexpr T *begin() const noexcept
    {
        return data_;
    }
    constexpr T *end() const noexcept
    {
        return data_ + size_;
    }
    constexpr T &operator[](std::size_t i) const
    {
        return data_[i];
    }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

/** The element type for a type of C++: KILN_DTYPE_f32 for float. Types without one, such as halves
 * and bytes that hold 4 bits, are bound with their element type: see Session::bind_input_of(). */
template <typename T> struct DType;
#define KILN_HPP_DTYPE(type, id)                                                                   \
    template <> struct DType<type> {                                                               \
        static constexpr KilnDType value = KILN_DTYPE_##id;                                        \
    }
KILN_HPP_DTYPE(float, f32);
KILN_HPP_DTYPE(double, f64);
KILN_HPP_DTYPE(std::int8_t, i8);
KILN_HPP_DTYPE(std::int16_t, i16);
KILN_HPP_DTYPE(std::int32_t, i32);
KILN_HPP_DTYPE(std::int64_t, i64);
KILN_HPP_DTYPE(std::uint8_t, u8);
KILN_HPP_DTYPE(std::uint16_t, u16);
KILN_HPP_DTYPE(std::uint32_t, u32);
KILN_HPP_DTYPE(std::uint64_t, u64);
KILN_HPP_DTYPE(bool, bool);
KILN_HPP_DTYPE(const KilnText *, string);
#undef KILN_HPP_DTYPE

/** The inside: for the classes below. */
namespace detail
{

[[noreturn]] inline void
fail(GError *error)
{
    const std::unique_ptr<GError, void (*)(GError *)> owner(error, g_error_free);
    const bool own = error->domain == KILN_ERROR;
    throw Error(own ? static_cast<KilnError>(error->code) : KILN_ERROR_RUN, error->message);
}

/** Calls @function with @args and a place for an error. Returns its result, or throws. */
template <typename Function, typename... Args>
auto
call(Function function, Args... args)
{
    GError *error = nullptr;
    auto result = function(args..., &error);
    if (error)
        fail(error);
    return result;
}

/** Owns a counted object. */
template <typename T, T *(*Ref)(T *), void (*Unref)(T *)> class Counted
{
  public:
    /** Takes over @object, which the caller owned. */
    explicit Counted(T *object) noexcept : object_(object)
    {
    }
    Counted(const Counted &other) : object_(other.object_ ? Ref(other.object_) : nullptr)
    {
    }
    Counted(Counted &&other) noexcept : object_(std::exchange(other.object_, nullptr))
    {
    }
    Counted &operator=(Counted other) noexcept
    {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Counted()
    {
        if (object_)
            Unref(object_);
    }
    /** The object of kiln.h, borrowed. */
    T *get() const noexcept
    {
        return object_;
    }
    /** The same, with an owner more: kiln.h's _unref() lets go of it. */
    T *ref() const
    {
        return Ref(object_);
    }

  private:
    T *object_;
};

/** A container whose elements stay when it goes. */
template <typename Range> struct IsBorrowed : std::is_lvalue_reference<Range> {
};
template <typename T> struct IsBorrowed<Span<T>> : std::true_type {
};

template <typename Range>
using Element =
    std::remove_cv_t<std::remove_pointer_t<decltype(std::data(std::declval<Range &>()))>>;

/** The same of a container that stays. Memory of one that is about to go would be read later. */
template <typename Range>
using Stays = std::enable_if_t<IsBorrowed<Range>::value, Element<std::remove_reference_t<Range>>>;

inline void
expect_dtype(const char *what, unsigned i, KilnDType found, KilnDType expected)
{
    if (found != expected)
        throw Error(KILN_ERROR_TYPE, std::string(what) + " " + std::to_string(i) + ": expected " +
                                         kiln_dtype_name(found) + ", found " +
                                         kiln_dtype_name(expected));
}

inline const KilnTensorInfo &
expect_info(const KilnTensorInfo *info, const char *what, unsigned i)
{
    if (!info)
        throw Error(KILN_ERROR_USAGE, "there is no " + std::string(what) + " " + std::to_string(i));
    return *info;
}

} // namespace detail

/** The dims that @info knows; -1 stands for one that is open. */
inline Span<const std::int64_t>
dims(const KilnTensorInfo &info)
{
    return { info.dims, info.rank > 0 ? static_cast<std::size_t>(info.rank) : 0 };
}

} // namespace kiln

#endif
