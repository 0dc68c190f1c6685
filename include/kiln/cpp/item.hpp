/* SPDX-License-Identifier: Apache-2.0 */
/* Items. Part of kiln.hpp, which includes it. */
#ifndef KILN_CPP_ITEM_HPP
#define KILN_CPP_ITEM_HPP

#include "cpp/base.hpp"

#include <vector>

namespace kiln
{

/** A tensor, sequence, optional or map that never changes. */
class Item : public detail::Counted<KilnItem, kiln_item_ref, kiln_item_unref>
{
  public:
    using Counted::Counted;

    /** Copies the @elements of a tensor of @dims. */
    template <typename Range>
    static Item tensor(const std::vector<std::int64_t> &dims, const Range &elements)
    {
        std::size_t expected = 1;
        for (std::int64_t dim : dims)
            expected *= dim > 0 ? static_cast<std::size_t>(dim) : 0;
        if (std::size(elements) != expected)
            throw Error(KILN_ERROR_SHAPE, "expected " + std::to_string(expected) +
                                              " elements, found " +
                                              std::to_string(std::size(elements)));
        return tensor(DType<detail::Element<const Range>>::value, dims, std::data(elements));
    }
    /** The same with an element type that C++ has no type for. */
    static Item tensor(KilnDType dtype, const std::vector<std::int64_t> &dims, const void *data)
    {
        return Item(detail::call(kiln_item_new_tensor, dtype, static_cast<int>(dims.size()),
                                 dims.data(), data));
    }
    static Item sequence(const std::vector<Item> &items)
    {
        std::vector<KilnItem *> borrowed;
        borrowed.reserve(items.size());
        for (const Item &item : items)
            borrowed.push_back(item.get());
        return Item(detail::call(kiln_item_new_sequence, borrowed.data(), borrowed.size()));
    }
    /** An optional that has @item. */
    static Item optional(const Item &item)
    {
        return Item(detail::call(kiln_item_new_optional, item.get()));
    }
    /** An optional that has nothing. */
    static Item nothing()
    {
        return Item(detail::call(kiln_item_new_optional, static_cast<KilnItem *>(nullptr)));
    }
    static Item map(const Item &keys, const Item &values)
    {
        return Item(detail::call(kiln_item_new_map, keys.get(), values.get()));
    }

    KilnDType dtype() const
    {
        return kiln_item_dtype(get());
    }
    /** The number of items in it: those of a sequence, 0 or 1 of an optional, 2 of a map. */
    std::size_t size() const
    {
        return kiln_item_length(get());
    }
    Item operator[](std::size_t i) const
    {
        KilnItem *item = kiln_item_get(get(), i);
        if (!item)
            throw Error(KILN_ERROR_USAGE, "there is no item " + std::to_string(i));
        return Item(kiln_item_ref(item));
    }
    Span<const std::int64_t> dims() const
    {
        int rank = 0;
        const std::int64_t *found = kiln_item_dims(get(), &rank);
        return { found, static_cast<std::size_t>(rank) };
    }
    /** The elements of a tensor. They live as long as the item. */
    template <typename T> Span<const T> elements() const
    {
        detail::expect_dtype("item", 0, dtype(), DType<T>::value);
        return { static_cast<const T *>(kiln_item_data(get())),
                 kiln_item_bytes(get()) / sizeof(T) };
    }
    friend bool operator==(const Item &a, const Item &b)
    {
        return kiln_item_equal(a.get(), b.get());
    }
    friend bool operator!=(const Item &a, const Item &b)
    {
        return !(a == b);
    }
};

} // namespace kiln

#endif
